#include "wsp/process/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace pawl::wsp {

namespace {

constexpr std::size_t kCommandBytesMax = 256;
constexpr std::size_t kAnswerBytesMax = 1 << 20;
constexpr int kCommandWaitMs = 200;  // a peer that connects and says nothing is not waited for

Status none_runs_in(const std::string& directory, int error_number) {
  return Status::failure(error_number, directory + ": no program runs in it under pawl wsp");
}

}  // namespace

Result<SupervisorSocket> SupervisorSocket::open(const OwnDirectory& directory) {
  const sockaddr_un address = socket_in(directory.descriptor(), "control");
  ::unlink(address.sun_path);
  SupervisorSocket made;
  made.listening_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.listening_.valid() ||
      ::bind(made.listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0 ||
      ::listen(made.listening_.get(), 8) != 0)
    return FailedCall{errno, "cannot make " + directory.path() + "/control"};
  return made;
}

std::optional<std::string> SupervisorSocket::take() {
  peer_.reset(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!peer_.valid()) return std::nullopt;
  std::string command;
  while (command.size() < kCommandBytesMax) {
    pollfd ready{peer_.get(), POLLIN, 0};
    std::array<char, kCommandBytesMax> piece;
    if (::poll(&ready, 1, kCommandWaitMs) <= 0) return std::nullopt;
    const ssize_t got = ::recv(peer_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got <= 0) return std::nullopt;
    command.append(piece.data(), static_cast<std::size_t>(got));
    if (const std::size_t end = command.find('\n'); end != std::string::npos)
      return command.substr(0, end);
  }
  return std::nullopt;
}

void SupervisorSocket::answer(const std::string& text) {
  const std::string line = text + "\n";
  // Whoever does not listen any more misses it.
  if (::send(peer_.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) errno = 0;
  peer_.reset(-1);
}

Result<std::string> command_supervisor(const std::string& directory, const std::string& command) {
  // Whoever's it is: it is only asked.
  const Descriptor holding(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!holding.valid() && errno == ENOENT) return none_runs_in(directory, ENOENT);
  if (!holding.valid()) return FailedCall{errno, "cannot open the directory " + directory};
  const sockaddr_un address = socket_in(holding.get(), "control");
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error_number = errno;
    if (error_number == ENOENT || error_number == ECONNREFUSED)
      return none_runs_in(directory, error_number);
    return FailedCall{error_number, "cannot reach what runs in " + directory};
  }
  const std::string line = command + "\n";
  if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0)
    return FailedCall{errno, "cannot tell the supervisor"};
  std::string answer;
  std::array<char, 4096> piece;
  while (answer.size() < kAnswerBytesMax) {
    const ssize_t got = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  if (answer.empty()) return Status::failure(EPIPE, "the supervisor ended without an answer");
  return answer;
}

}  // namespace pawl::wsp
