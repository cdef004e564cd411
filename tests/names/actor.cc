#include "names/actor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mapping/mapping.h"
#include "medium/block_medium.h"
#include "pawl/pawl.h"

namespace pawl::test {
namespace {

constexpr std::size_t kTextBytes = 512;

struct Request {
  Order order;
  Stamp stamp;
  char path[PATH_MAX];
};

struct Reply {
  bool is_done;
  bool is_whole;
  int error_number;
  Stamp stamp;
  char text[kTextBytes];
};

Reply refused() {
  Reply reply{};
  reply.error_number = errno;
  std::snprintf(reply.text, sizeof reply.text, "%s", pawl_last_error());
  return reply;
}

Reply open_file(const char* path, void*& mapped) {
  const int descriptor = ::open(path, O_RDWR | O_NONBLOCK);
  if (descriptor < 0) {
    Reply reply{};
    reply.error_number = errno;
    std::snprintf(reply.text, sizeof reply.text, "cannot open %s", path);
    return reply;
  }
  void* const at =
      pawl_mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
  const Reply failed = refused();
  ::close(descriptor);
  if (at == MAP_FAILED) return failed;
  mapped = at;
  Reply reply{};
  reply.is_done = true;
  const auto stamp = stamp_of(at);
  reply.is_whole = stamp.has_value();
  reply.stamp = stamp.value_or(0);
  return reply;
}

Reply recover_file(const char* path, bool accept_loss) {
  Reply reply{};
  auto medium = open_block_medium(path, false);
  Status status = medium.status();
  if (medium.ok()) status = recover(*medium.value(), accept_loss).status();
  reply.is_done = status.ok();
  reply.error_number = status.error_number();
  std::snprintf(reply.text, sizeof reply.text, "%s", status.text().c_str());
  return reply;
}

Reply obey(const Request& request, void*& mapped) {
  Reply done{};
  done.is_done = true;
  switch (request.order) {
    case Order::open:
      return open_file(request.path, mapped);
    case Order::commit: {
      auto* const words = static_cast<Stamp*>(mapped);
      std::fill_n(words, kFileBytes / sizeof(Stamp), request.stamp);
      return pawl_msync(mapped, kFileBytes, MS_SYNC) == 0 ? done : refused();
    }
    case Order::close: {
      const bool is_closed = pawl_munmap(mapped, kFileBytes) == 0;
      mapped = nullptr;
      return is_closed ? done : refused();
    }
    case Order::recover:
    case Order::recover_with_loss:
      return recover_file(request.path, request.order == Order::recover_with_loss);
  }
  return {};
}

[[noreturn]] void serve(int channel) {
  void* mapped = nullptr;
  Request request{};
  while (::recv(channel, &request, sizeof request, 0) == sizeof request) {
    const Reply reply = obey(request, mapped);
    if (::send(channel, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) break;
  }
  ::_exit(0);
}

}  // namespace

std::optional<Stamp> stamp_of(const void* bytes) {
  Stamp words[kFileBytes / sizeof(Stamp)];
  std::memcpy(words, bytes, sizeof words);
  for (const Stamp word : words)
    if (word != words[0]) return std::nullopt;
  return words[0];
}

Actor::Actor() { begin(); }

void Actor::begin() {
  kill();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  process_ = ::fork();
  if (process_ < 0) std::abort();
  if (process_ == 0) {
    ::close(ends[0]);
    serve(ends[1]);
  }
  ::close(ends[1]);
  channel_ = ends[0];
}

void Actor::kill() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  ::close(channel_);
  process_ = 0;
}

bool Actor::send(Order order, const std::string& path, Stamp stamp) const {
  Request request{};
  request.order = order;
  request.stamp = stamp;
  std::snprintf(request.path, sizeof request.path, "%s", path.c_str());
  return ::send(channel_, &request, sizeof request, MSG_NOSIGNAL) == sizeof request;
}

std::optional<Answer> Actor::receive() const {
  Reply reply{};
  if (::recv(channel_, &reply, sizeof reply, 0) != sizeof reply) return std::nullopt;
  return Answer{reply.is_done, reply.error_number, reply.is_whole, reply.stamp, reply.text};
}

Answer Actor::ask(Order order, const std::string& path, Stamp stamp) {
  if (send(order, path, stamp)) {
    if (auto answer = receive()) return *answer;
  }
  return Answer{false, ECHILD, false, 0, "the process died"};
}

std::optional<Answer> Actor::ask_and_kill(Order order, const std::string& path, Stamp stamp,
                                          unsigned delay_us) {
  if (!send(order, path, stamp)) return std::nullopt;
  ::usleep(delay_us);
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  auto answer = receive();
  ::close(channel_);
  process_ = 0;
  return answer;
}

}  // namespace pawl::test
