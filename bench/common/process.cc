#include "common/process.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "common/failure.h"

namespace pawl::bench {
namespace {

// What a process says first: that it is ready, or why it never will be.
enum class Outcome : std::uint32_t { ready, unavailable };

bool say_why(Channel& channel, const std::string& text) {
  const std::vector<char> bytes(text.begin(), text.end());
  return channel.send(Outcome::unavailable) && channel.send_all(bytes);
}

void run(Channel& channel, const Process::Serve& serve) {
  bool is_ready = false;
  try {
    serve(channel, [&] {
      is_ready = true;
      // A conductor that has gone is noticed at the first question.
      channel.send(Outcome::ready);
    });
  } catch (const Unavailable& reason) {
    if (is_ready) throw;
    say_why(channel, reason.what());
  }
}

}  // namespace

Channel::~Channel() { ::close(descriptor_); }

bool Channel::send(const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::send(descriptor_, from, count, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

bool Channel::receive(void* bytes, std::size_t count) {
  char* into = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::recv(descriptor_, into, count, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    into += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

// Not by closing it: processes made later have copies.
void Channel::hang_up() { ::shutdown(descriptor_, SHUT_RDWR); }

Process::Process(std::string name, const Serve& serve) : name_(std::move(name)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail_with_errno("cannot make a socket pair");
  std::fflush(nullptr);
  process_ = ::fork();
  if (process_ < 0) fail_with_errno("cannot fork");
  if (process_ == 0) {
    // Asked to stop, the conductor ends its processes.  Should it die, the last one made meets the
    // end of its channel, and its end is the end of the one before.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    ::close(ends[0]);
    int code = EXIT_SUCCESS;
    try {
      Channel channel(ends[1]);
      run(channel, serve);
    } catch (const std::exception& exception) {
      std::fprintf(stderr, "bench: %s: %s\n", name_.c_str(), exception.what());
      code = EXIT_FAILURE;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(ends[1]);
  channel_ = std::make_unique<Channel>(ends[0]);
  greet();
}

void Process::greet() {
  Outcome outcome{};
  if (!channel_->receive(outcome)) fail();
  if (outcome == Outcome::ready) return;
  std::vector<char> text;
  channel_->receive_all(text);
  unavailable_.assign(text.begin(), text.end());
  if (unavailable_.empty()) unavailable_ = "no reason given";
}

void Process::fail() {
  channel_->hang_up();
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  const std::string how =
      WIFSIGNALED(status) ? std::string(": ") + ::strsignal(WTERMSIG(status)) : "";
  throw std::runtime_error(name_ + " ended early" + how);
}

Process::~Process() {
  channel_->hang_up();
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

}  // namespace pawl::bench
