#include "wsp/process/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "wsp/clock.h"

namespace pawl::wsp {

namespace {

constexpr const char* kControlSocket = "control";
constexpr int kWaitingMax = 8;
constexpr std::size_t kCommandBytesMax = 256;
constexpr std::size_t kAnswerBytesMax = 1 << 20;
constexpr int kAnswerWaitMs = 1000;
constexpr int kCommandWaitMs = 200;  // a peer that connects and says nothing is not waited for

Status none_runs_in(const std::string& directory, int error_number) {
  return Status::failure(error_number, directory + ": no program runs in it under pawl wsp");
}

// Of whoever's directory: it is only asked.  Not through a link, nor a socket of another user's,
// for those would be asked in our name who know that one.
Result<Descriptor> reach_supervisor(const std::string& directory) {
  const Descriptor holding(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!holding.valid() && errno == ENOENT) return none_runs_in(directory, ENOENT);
  if (!holding.valid()) return FailedCall{errno, "cannot open the directory " + directory};
  const Descriptor named(::openat(holding.get(), kControlSocket, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!named.valid() && errno == ENOENT) return none_runs_in(directory, ENOENT);
  struct stat owner{};
  struct stat facts{};
  if (!named.valid() || ::fstat(holding.get(), &owner) != 0 || ::fstat(named.get(), &facts) != 0)
    return FailedCall{errno, "cannot reach what runs in " + directory};
  if (!S_ISSOCK(facts.st_mode) || facts.st_uid != owner.st_uid) {
    return Status::failure(EPERM, directory + "/" + kControlSocket +
                                      " is no socket of the directory's owner; look at it");
  }
  const std::string path = link_to_descriptor(named.get());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  PAWL_ASSERT(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error_number = errno;
    if (error_number == ECONNREFUSED) return none_runs_in(directory, error_number);
    return FailedCall{error_number, "cannot reach what runs in " + directory};
  }
  return socket;
}

}  // namespace

Result<SupervisorSocket> SupervisorSocket::open(const OwnDirectory& directory) {
  SupervisorSocket made;
  made.listening_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.listening_.valid()) return FailedCall{errno, "cannot make a socket"};
  PAWL_TRY(listen_in(directory, kControlSocket, made.listening_, kWaitingMax));
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
  // Whoever does not listen any more misses it, or the rest.
  const Deadline deadline(kAnswerWaitMs);
  for (std::string_view left = line; !left.empty();) {
    pollfd ready{peer_.get(), POLLOUT, 0};
    if (::poll(&ready, 1, deadline.left_ms()) <= 0) break;
    const ssize_t sent = ::send(peer_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN && !deadline.passed()) continue;
    if (sent <= 0) break;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  peer_.reset(-1);
}

Result<std::string> command_supervisor(const std::string& directory, const std::string& command,
                                       int wait_ms) {
  Result<Descriptor> socket = reach_supervisor(directory);
  if (!socket.ok()) return socket.status();
  const int number = socket.value().get();
  const std::string line = command + "\n";
  if (::send(number, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return FailedCall{errno, "cannot tell the supervisor"};
  const Deadline deadline(wait_ms);
  std::string answer;
  std::array<char, 4096> piece;
  while (answer.size() < kAnswerBytesMax) {
    pollfd ready{number, POLLIN, 0};
    if (::poll(&ready, 1, deadline.left_ms()) == 0) {
      return Status::failure(ETIMEDOUT, "the supervisor of " + directory +
                                            " did not answer in time; look whether it runs");
    }
    const ssize_t got = ::recv(number, piece.data(), piece.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  if (answer.empty()) return Status::failure(EPIPE, "the supervisor ended without an answer");
  return answer;
}

}  // namespace pawl::wsp
