// The directory's server, in one form of persistence: an entry is durable, where the form knows
// that, before its answer leaves.  One thread.
//
//   bench_wsp_directory_FORM FILE ENTRIES-MAX PORT
//
// Listens on the loopback interface, serves until it is killed.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "directory/protocol.h"
#include "memory/memory.h"

namespace {

using pawl::bench::wsp::Answer;
using pawl::bench::wsp::Facts;
using pawl::bench::wsp::Request;

constexpr std::size_t kConnectionsMax = 64;
constexpr std::size_t kRequestsAtOnce = 64;

std::uint64_t cpu_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(EXIT_FAILURE);
}

// False: there is nobody any more.  What is answered is little: it never waits for long.
bool send_all(int connection, const void* bytes, std::size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(connection, at, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

class Server {
 public:
  explicit Server(directory* entries) : directory_(entries), began_cpu_ns_(cpu_now_ns()) {}

  [[noreturn]] void serve(int listener) {
    std::vector<pollfd> polled{{listener, POLLIN, 0}};
    for (;;) {
      if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) give_up("poll");
      for (std::size_t i = polled.size(); i-- > 1;) {
        if (polled[i].revents == 0 || answer(polled[i].fd)) continue;
        ::close(polled[i].fd);
        polled.erase(polled.begin() + static_cast<std::ptrdiff_t>(i));
        connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      }
      if ((polled[0].revents & POLLIN) != 0 && polled.size() <= kConnectionsMax) {
        const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) continue;
        const int at_once = 1;
        ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
        polled.push_back({connection, POLLIN, 0});
        connections_.push_back(std::make_unique<Connection>(connection));
      }
    }
  }

 private:
  struct Connection {
    explicit Connection(int accepted) : descriptor(accepted) {}
    int descriptor;
    std::size_t bytes = 0;  // of requests that are there in part
    std::array<Request, kRequestsAtOnce> requests;
  };

  // False: it is at its end.
  bool answer(int descriptor) {
    const auto found =
        std::find_if(connections_.begin(), connections_.end(),
                     [&](const auto& connection) { return connection->descriptor == descriptor; });
    Connection& connection = **found;
    auto* const bytes = reinterpret_cast<char*>(connection.requests.data());
    const ssize_t count = ::recv(descriptor, bytes + connection.bytes,
                                 sizeof connection.requests - connection.bytes, 0);
    if (count <= 0) return count < 0 && errno == EINTR;
    connection.bytes += static_cast<std::size_t>(count);
    std::array<char, kRequestsAtOnce> answers;
    std::size_t answered = 0;
    const std::size_t whole = connection.bytes / sizeof(Request);
    for (std::size_t i = 0; i < whole; ++i) {
      if (connection.requests[i].name[0] == 0) {
        const Facts facts = look();
        if (!send_all(descriptor, &facts, sizeof facts)) return false;
        continue;
      }
      answers[answered++] = static_cast<char>(insert(connection.requests[i]));
    }
    connection.bytes -= whole * sizeof(Request);
    std::memmove(bytes, bytes + whole * sizeof(Request), connection.bytes);
    return send_all(descriptor, answers.data(), answered);
  }

  Answer insert(const Request& request) {
    if (!directory_insert(directory_, &request)) return Answer::refused;
    pawl::bench::wsp::commit_memory();
    return Answer::inserted;
  }

  // The time without what it takes to look.
  Facts look() const {
    Facts facts{.entries = directory_entries(directory_),
                .height = 0,
                .cpu_ns = cpu_now_ns() - began_cpu_ns_};
    if (!directory_is_sound(directory_, &facts.height)) facts.height = 0;
    return facts;
  }

  directory* const directory_;
  const std::uint64_t began_cpu_ns_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

int listen_on(std::uint16_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int again = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (listener < 0 || ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again) != 0 ||
      ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, kConnectionsMax) != 0)
    give_up("cannot listen");
  return listener;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s FILE ENTRIES-MAX PORT\n", arguments[0]);
    return 2;
  }
  const auto entries_max = std::strtoull(arguments[2], nullptr, 10);
  void* const memory = pawl::bench::wsp::open_memory(arguments[1], directory_bytes(entries_max));
  directory* const entries = directory_make(memory, entries_max);
  pawl::bench::wsp::commit_memory();
  const int listener = listen_on(static_cast<std::uint16_t>(std::atoi(arguments[3])));
  Server(entries).serve(listener);
}
