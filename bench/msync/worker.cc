#include "msync/worker.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "msync/files.h"

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSamplesMax = 1 << 16;  // in one turn
// The first commits of a turn find cold caches and an idle disk, and are not counted.
constexpr std::size_t kLeadIn = 2;

struct Answer {
  std::uint64_t samples = 0;
  System::Logged logged;
};

enum class Outcome : std::uint32_t { ready, unavailable };
struct Greeting {
  Outcome outcome = Outcome::ready;
  std::uint32_t text_bytes = 0;
};

// False when the other side has gone.
bool send_all(int channel, const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::send(channel, from, count, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

bool receive_all(int channel, void* bytes, std::size_t count) {
  char* into = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::recv(channel, into, count, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    into += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

std::vector<Sample> measure(System& system, const Turn& turn) {
  std::vector<Sample> samples;
  const auto end = Clock::now() + std::chrono::microseconds(turn.duration_us);
  std::size_t commits = 0;
  while (samples.size() < kSamplesMax &&
         (Clock::now() < end || samples.size() < turn.commits_min)) {
    if (turn.shape.think_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(turn.shape.think_us));
    system.prepare(turn.shape);
    const auto start = Clock::now();
    system.store(turn.shape);
    const auto stored = Clock::now();
    system.commit(turn.shape);
    const auto committed = Clock::now();
    if (++commits > kLeadIn)
      samples.push_back({microseconds(stored - start), microseconds(committed - stored)});
  }
  return samples;
}

// Until the conductor goes.
void serve(int channel, const MakeSystem& make) {
  std::unique_ptr<System> system;
  try {
    system = make();
  } catch (const Unavailable& reason) {
    const std::string text = reason.what();
    const Greeting greeting{Outcome::unavailable, static_cast<std::uint32_t>(text.size())};
    if (send_all(channel, &greeting, sizeof greeting)) send_all(channel, text.data(), text.size());
    return;
  }
  const Greeting greeting;
  if (!send_all(channel, &greeting, sizeof greeting)) return;
  Turn turn;
  while (receive_all(channel, &turn, sizeof turn)) {
    const System::Logged before = system->logged();
    const std::vector<Sample> samples = measure(*system, turn);
    const System::Logged after = system->logged();
    system->settle();
    const Answer answer{samples.size(),
                        {after.commits - before.commits, after.bytes - before.bytes}};
    if (!send_all(channel, &answer, sizeof answer) ||
        !send_all(channel, samples.data(), samples.size() * sizeof(Sample))) {
      return;
    }
  }
}

}  // namespace

Worker::Worker(std::string name, const MakeSystem& make) : name_(std::move(name)) {
  int channels[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channels) != 0)
    fail_with_errno("cannot make a socket pair");
  std::fflush(nullptr);
  process_ = ::fork();
  if (process_ < 0) fail_with_errno("cannot fork");
  if (process_ == 0) {
    // Asked to stop, the conductor ends its workers.  Should it die, the last one made meets the
    // end of its channel, and its end is the end of the one before.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    ::close(channels[0]);
    int code = EXIT_SUCCESS;
    try {
      serve(channels[1], make);
    } catch (const std::exception& exception) {
      std::fprintf(stderr, "bench: %s: %s\n", name_.c_str(), exception.what());
      code = EXIT_FAILURE;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(channels[1]);
  channel_ = channels[0];
  Greeting greeting;
  if (!receive_all(channel_, &greeting, sizeof greeting)) fail();
  if (greeting.outcome == Outcome::unavailable) {
    unavailable_.resize(greeting.text_bytes);
    receive_all(channel_, unavailable_.data(), unavailable_.size());
    if (unavailable_.empty()) unavailable_ = "no reason given";
  }
}

// The process has ended: says how.
void Worker::fail() {
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  const std::string how =
      WIFSIGNALED(status) ? std::string(": ") + ::strsignal(WTERMSIG(status)) : "";
  throw std::runtime_error(name_ + " ended early" + how);
}

Worker::~Worker() {
  if (channel_ >= 0) {
    // Not by closing it: workers made later have copies.
    ::shutdown(channel_, SHUT_RDWR);
    ::close(channel_);
  }
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

TurnResult Worker::take(const Turn& turn) {
  Answer answer;
  if (!send_all(channel_, &turn, sizeof turn) || !receive_all(channel_, &answer, sizeof answer))
    fail();
  TurnResult result;
  result.samples.resize(answer.samples);
  result.logged = answer.logged;
  if (!receive_all(channel_, result.samples.data(), answer.samples * sizeof(Sample))) fail();
  return result;
}

}  // namespace pawl::bench
