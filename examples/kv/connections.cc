#include "connections.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include "bounds.h"

namespace kv {
namespace {

void check(int status, const std::string& what) {
  if (status < 0) throw std::runtime_error(what + ": " + uv_strerror(status));
}

Connections& connections_of(const uv_stream_t* stream) {
  return *static_cast<Connections*>(stream->loop->data);
}

template <class Handle>
uv_handle_t* as_handle(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

template <class Handle>
uv_stream_t* as_stream(Handle* handle) {
  return reinterpret_cast<uv_stream_t*>(handle);
}

uv_buf_t buffer_of(std::string& bytes) {
  static_assert(kOutputBytesPause + kOutputBytesMax <= std::numeric_limits<unsigned>::max());
  return uv_buf_init(bytes.data(), static_cast<unsigned>(bytes.size()));
}

}  // namespace

Connections::Connections(const Settings& settings, Service& service, ServerFacts& facts)
    : settings_(settings),
      service_(service),
      facts_(facts),
      read_buffer_(std::make_unique<char[]>(kReadBytes)) {
  constexpr size_t kListeners = 2;
  waiting_listeners_.reserve(kListeners);
  check(uv_loop_init(&loop_), "event loop");
  loop_.data = this;
  uv_idle_init(&loop_, &resumption_);
}

Connections::~Connections() {
  close_all();
  uv_loop_close(&loop_);
}

void Connections::close_all() {
  uv_walk(
      &loop_,
      [](uv_handle_t* handle, void* self) {
        if (uv_is_closing(handle) != 0) return;
        auto* connections = static_cast<Connections*>(self);
        const auto client = connections->clients_.find(static_cast<Client*>(handle->data));
        if (client != connections->clients_.end()) {
          connections->close(*client->second);
        } else {
          uv_close(handle, nullptr);
        }
      },
      this);
  uv_run(&loop_, UV_RUN_DEFAULT);
}

void Connections::listen() {
  if (settings_.port != 0) listen_on_tcp();
  if (!settings_.unix_socket.empty()) listen_on_unix_socket();
}

void Connections::listen_on_tcp() {
  const std::string where = settings_.bind_address + " port " + std::to_string(settings_.port);
  sockaddr_in address{};
  check(uv_ip4_addr(settings_.bind_address.c_str(), settings_.port, &address), where);
  uv_tcp_init(&loop_, &tcp_listener_);
  check(uv_tcp_bind(&tcp_listener_, reinterpret_cast<sockaddr*>(&address), 0), where);
  const auto accepted = [](uv_stream_t* listener, int status) {
    if (status == 0) connections_of(listener).accept(listener);
  };
  check(uv_listen(as_stream(&tcp_listener_), kListenBacklog, accepted), where);
}

void Connections::listen_on_unix_socket() {
  const char* path = settings_.unix_socket.c_str();
  // A longer one would be cut.
  constexpr size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
  if (settings_.unix_socket.size() > kPathBytesMax) {
    throw std::runtime_error("cannot listen at " + settings_.unix_socket +
                             ": the path of a socket has " + std::to_string(kPathBytesMax) +
                             " bytes at most; name a shorter one");
  }
  struct stat found{};
  if (lstat(path, &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      throw std::runtime_error("cannot listen at " + settings_.unix_socket +
                               ": there is something else than a socket; remove it or name "
                               "another path");
    }
    unlink(path);  // that of a server which was killed
  }
  uv_pipe_init(&loop_, &unix_listener_, 0);
  check(uv_pipe_bind(&unix_listener_, path), settings_.unix_socket);
  const auto accepted = [](uv_stream_t* listener, int status) {
    if (status == 0) connections_of(listener).accept(listener);
  };
  check(uv_listen(as_stream(&unix_listener_), kListenBacklog, accepted), settings_.unix_socket);
}

// No exception may pass the event loop, which is C.
void Connections::accept(uv_stream_t* listener) {
  try {
    make_client(listener);
  } catch (const std::bad_alloc&) {
    waiting_listeners_.push_back(listener);  // it accepts nobody else before
  }
}

void Connections::tidy() {
  const size_t waiting = waiting_listeners_.size();
  for (size_t n = 0; n < waiting; ++n) {
    uv_stream_t* listener = waiting_listeners_.back();
    waiting_listeners_.pop_back();
    accept(listener);
  }
}

void Connections::make_client(uv_stream_t* listener) {
  const size_t clients = clients_.size() + 1;
  for (std::vector<Client*>* list : {&resumable_, &resuming_}) {
    if (list->capacity() < clients) list->reserve(2 * clients);
  }
  auto made = std::make_unique<Client>();
  service_.greet(*made, clients);
  Client& client = *clients_.emplace(made.get(), std::move(made)).first->second;
  const bool tcp = listener->type == UV_TCP;
  if (tcp) {
    uv_tcp_init(&loop_, &client.handle.tcp);
  } else {
    uv_pipe_init(&loop_, &client.handle.pipe, 0);
  }
  client.stream()->data = &client;
  facts_.clients = clients_.size();
  if (uv_accept(listener, client.stream()) != 0) return close(client);
  if (tcp) {
    uv_tcp_nodelay(&client.handle.tcp, 1);
    uv_tcp_keepalive(&client.handle.tcp, 1, kKeepaliveSeconds);
  }
  if (clients_.size() <= kClientsMax) return start_reading(client);
  try {
    service_.refuse(client, "ERR max number of clients reached");
  } catch (const std::bad_alloc&) {
    close(client);
  }
}

void Connections::start_reading(Client& client) {
  const auto provide = [](uv_handle_t* handle, size_t, uv_buf_t* buffer) {
    char* bytes = static_cast<Connections*>(handle->loop->data)->read_buffer_.get();
    *buffer = uv_buf_init(bytes, kReadBytes);
  };
  const auto take_read = [](uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
    connections_of(stream).take(*static_cast<Client*>(stream->data), count, buffer->base);
  };
  if (client.reading || uv_read_start(client.stream(), provide, take_read) != 0) return;
  client.reading = true;
}

void Connections::stop_reading(Client& client) {
  if (client.reading) uv_read_stop(client.stream());
  client.reading = false;
}

void Connections::take(Client& client, ssize_t count, const char* bytes) {
  if (count == 0) return;  // nothing was there after all
  if (count < 0) {
    stop_reading(client);
    client.at_end = true;
    // Behind an end of input replies may still be awaited; behind a failure not.
    client.abandoned |= count != UV_EOF;
    return settle(client);
  }
  try {
    client.reader.append({bytes, static_cast<size_t>(count)});
  } catch (const std::bad_alloc&) {
    client.abandon();
  }
  serve(client);
}

void Connections::serve(Client& client) {
  client.put_off = false;
  try {
    while (!client.ended && !service_.has_failed()) {
      if (client.unsent_bytes() > kOutputBytesPause) {
        client.put_off = true;
        break;
      }
      const RequestReader::Outcome outcome = client.reader.next();
      if (outcome == RequestReader::Outcome::kIncomplete) break;
      if (outcome == RequestReader::Outcome::kRequest) {
        service_.serve(client, client.reader.arguments());
      } else {
        service_.refuse(client, client.reader.error());
      }
    }
  } catch (const std::bad_alloc&) {
    client.abandon();
  }
  settle(client);
}

// The loop must not sleep behind a resumption, for its replies leave at the end of the turn; so the
// turn that finds nothing more to resume is the one that stops it.
void Connections::resume() {
  if (resumable_.empty()) uv_idle_stop(&resumption_);
  std::swap(resumable_, resuming_);
  for (Client* client : resuming_) {
    client->awaits_resumption = false;
    if (!client->closing) serve(*client);
  }
  resuming_.clear();
}

void Connections::deliver(Client& client) {
  try {
    if (client.unsent.empty()) {
      std::swap(client.unsent, client.round);
    } else {
      client.unsent += client.round;
    }
  } catch (const std::bad_alloc&) {
    client.abandon();
  }
  empty(client.round);
  send(client);
  settle(client);
}

void Connections::send(Client& client) {
  if (client.closing || client.abandoned || !client.sending.empty()) return;
  if (client.unsent.empty()) return;
  uv_buf_t buffer = buffer_of(client.unsent);
  const int sent = uv_try_write(client.stream(), &buffer, 1);
  if (sent < 0 && sent != UV_EAGAIN) {
    client.abandoned = true;
    return;
  }
  if (sent == static_cast<int>(client.unsent.size())) return empty(client.unsent);
  if (sent > 0) client.unsent.erase(0, static_cast<size_t>(sent));
  std::swap(client.sending, client.unsent);
  client.write.data = &client;
  buffer = buffer_of(client.sending);
  const auto done = [](uv_write_t* write, int status) {
    auto& sender = *static_cast<Client*>(write->data);
    Connections& connections = connections_of(sender.stream());
    empty(sender.sending);
    sender.abandoned |= status != 0;
    connections.send(sender);
    connections.settle(sender);
  };
  if (uv_write(&client.write, client.stream(), &buffer, 1, done) == 0) return;
  empty(client.sending);
  client.abandoned = true;
}

// Decides what is next for a client.
void Connections::settle(Client& client) {
  if (client.closing) return;
  count(client);
  if (client.closing) return;
  const bool waits = client.round_replies > 0 || client.unsent_bytes() > 0;
  const bool served = client.ended || (client.at_end && !client.put_off);
  if (client.abandoned || (served && !waits)) return close(client);
  const bool full = client.unsent_bytes() > kOutputBytesPause;
  if (full || client.ended || client.at_end || client.put_off) {
    stop_reading(client);
  } else {
    start_reading(client);
  }
  if (client.put_off && !full && !client.awaits_resumption) {
    client.awaits_resumption = true;
    resumable_.push_back(&client);
    resumption_.data = this;
    uv_idle_start(&resumption_,
                  [](uv_idle_t* idle) { static_cast<Connections*>(idle->data)->resume(); });
  }
}

void Connections::close(Client& client) {
  client.closing = true;
  std::erase(resumable_, &client);
  facts_.buffer_bytes -= std::exchange(client.counted_bytes, 0);
  // All but what is being sent: the event loop reads it until it has closed the connection.
  client.reader = RequestReader();
  std::string().swap(client.round);
  std::string().swap(client.unsent);
  uv_close(as_handle(client.stream()), [](uv_handle_t* handle) {
    auto* connections = static_cast<Connections*>(handle->loop->data);
    connections->clients_.erase(static_cast<Client*>(handle->data));
    connections->facts_.clients = connections->clients_.size();
  });
}

void Connections::count(Client& client) {
  const size_t bytes = client.buffer_bytes();
  facts_.buffer_bytes += bytes - std::exchange(client.counted_bytes, bytes);
  while (facts_.buffer_bytes > kAllBuffersBytesMax) {
    const auto largest =
        std::max_element(clients_.begin(), clients_.end(), [](const auto& a, const auto& b) {
          return a.second->counted_bytes < b.second->counted_bytes;
        });
    close(*largest->second);
  }
}

}  // namespace kv
