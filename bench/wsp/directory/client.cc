// Inserts so many random entries over so many connections, with so many requests under way on each.
// Prints one line of JSON.
//
//   bench_wsp_directory_client PORT ENTRIES CONNECTIONS DEPTH SEED
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
#include <ctime>
#include <random>
#include <vector>

#include "directory/protocol.h"

namespace {

using pawl::bench::wsp::Answer;
using pawl::bench::wsp::Facts;
using pawl::bench::wsp::Request;

constexpr std::size_t kDepthMax = 64;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(EXIT_FAILURE);
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

int connect_to(std::uint16_t port) {
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connection < 0 ||
      ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    give_up("cannot connect");
  const int at_once = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  return connection;
}

void send_all(int connection, const void* bytes, std::size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(connection, at, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) give_up("cannot send");
    at += sent;
    count -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int connection, void* bytes, std::size_t count) {
  char* at = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t received = ::recv(connection, at, count, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) give_up("cannot receive");
    at += received;
    count -= static_cast<std::size_t>(received);
  }
}

Facts ask(int connection) {
  const Request request{};
  Facts facts;
  send_all(connection, &request, sizeof request);
  receive_all(connection, &facts, sizeof facts);
  return facts;
}

// Drawn beforehand.
std::vector<Request> draw(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Request> requests(count);
  for (Request& request : requests) {
    for (std::uint64_t& word : request.name) word = random() | 1;
    for (std::uint64_t& word : request.value) word = random();
  }
  return requests;
}

// Sends the next requests of all, as many as may be under way on this connection.
class Load {
 public:
  Load(const std::vector<Request>& requests, std::size_t depth)
      : requests_(requests), depth_(depth) {}

  void send_next(int connection, std::size_t count) {
    count = std::min(count, requests_.size() - sent_);
    if (count == 0) return;
    send_all(connection, &requests_[sent_], count * sizeof(Request));
    sent_ += count;
  }
  // Answers that are there, and as many requests in their place.
  void take_answers(int connection) {
    std::array<char, kDepthMax> answers;
    const ssize_t count = ::recv(connection, answers.data(), depth_, 0);
    if (count <= 0) give_up("cannot receive");
    for (ssize_t i = 0; i < count; ++i) {
      if (answers[static_cast<std::size_t>(i)] != static_cast<char>(Answer::inserted)) {
        std::fprintf(stderr, "an entry was refused\n");
        std::exit(EXIT_FAILURE);
      }
    }
    answered_ += static_cast<std::size_t>(count);
    send_next(connection, static_cast<std::size_t>(count));
  }
  bool is_over() const { return answered_ == requests_.size(); }

 private:
  const std::vector<Request>& requests_;
  const std::size_t depth_;
  std::size_t sent_ = 0;
  std::size_t answered_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "usage: %s PORT ENTRIES CONNECTIONS DEPTH SEED\n", arguments[0]);
    return 2;
  }
  const auto port = static_cast<std::uint16_t>(std::atoi(arguments[1]));
  const std::size_t depth =
      std::min<std::size_t>(kDepthMax, std::strtoull(arguments[4], nullptr, 10));
  const std::vector<Request> requests =
      draw(std::strtoull(arguments[2], nullptr, 10), std::strtoull(arguments[5], nullptr, 10));
  std::vector<pollfd> connections(std::strtoull(arguments[3], nullptr, 10));
  for (pollfd& connection : connections) connection = {connect_to(port), POLLIN, 0};
  const Facts before = ask(connections.front().fd);

  Load load(requests, depth);
  const std::uint64_t began_ns = now_ns();
  for (const pollfd& connection : connections) load.send_next(connection.fd, depth);
  while (!load.is_over()) {
    if (::poll(connections.data(), connections.size(), -1) < 0 && errno != EINTR) give_up("poll");
    for (const pollfd& connection : connections) {
      if (connection.revents != 0) load.take_answers(connection.fd);
    }
  }
  const std::uint64_t wall_ns = now_ns() - began_ns;
  const Facts after = ask(connections.front().fd);
  std::printf(
      "{\"inserted\": %llu, \"height\": %llu, \"wall_ns\": %llu, \"server_cpu_ns\": %llu}\n",
      static_cast<unsigned long long>(after.entries - before.entries),
      static_cast<unsigned long long>(after.height), static_cast<unsigned long long>(wall_ns),
      static_cast<unsigned long long>(after.cpu_ns - before.cpu_ns));
  return 0;
}
