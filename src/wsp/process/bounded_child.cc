#include "wsp/process/bounded_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "medium/descriptor.h"
#include "medium/sole_closer.h"
#include "wsp/process/annex.h"
#include "wsp/process/rebuild_descriptors.h"

namespace pawl::wsp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kToldBytesMax = 4096;
// Of many steps together, which a server may each answer late.
constexpr std::chrono::seconds kStepsTimeMax{20};
constexpr std::chrono::milliseconds kEachStepTimeMax{5};
// A killed child ends at once, unless a server holds it.
constexpr std::chrono::milliseconds kEndTimeMax{20};

std::chrono::milliseconds left_until(Clock::time_point until) {
  return std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
}

[[noreturn]] void tell_of(int pipe, const std::function<Status()>& work, std::vector<int> kept) {
  kept.push_back(pipe);
  set_sole_closer(false);  // what is closed here was not by its owner
  close_all_but(kept);
  const Status done = work();
  const int error_number = done.error_number();
  std::string said(reinterpret_cast<const char*>(&error_number), sizeof(error_number));
  if (!done.ok()) said += done.text();
  said.resize(std::min(said.size(), kToldBytesMax));
  ::_exit(::write(pipe, said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
}

// How many steps a child has done: behind each it may take that long again, up to a time for all.
class Steps {
 public:
  explicit Steps(std::size_t count)
      : until_(Clock::now() + kStepsTimeMax + kEachStepTimeMax * count) {}
  bool is_one_more() {
    const std::size_t before = std::exchange(seen_, done_->load());
    return seen_ != before;
  }
  // In the child.
  void note() { done_->fetch_add(1); }
  bool valid() const { return bytes_.data() != nullptr; }
  Clock::time_point until() const { return until_; }

 private:
  using Count = std::atomic<std::size_t>;
  static_assert(Count::is_always_lock_free);

  SharedBytes bytes_{sizeof(Count)};
  Count* done_ = valid() ? new (bytes_.data()) Count(0) : nullptr;
  std::size_t seen_ = 0;
  Clock::time_point until_;
};

// One write(2) makes it.
std::string read_answer(int pipe, std::chrono::milliseconds longest, Steps* steps,
                        Clock::time_point& until) {
  std::string text(kToldBytesMax, 0);
  pollfd told{pipe, POLLIN, 0};
  int ready = -1;
  while (ready < 0) {
    const auto left = std::max(left_until(until), std::chrono::milliseconds(0));
    ready = ::poll(&told, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) break;
    if (ready != 0 || steps == nullptr || !steps->is_one_more()) continue;
    if (Clock::now() >= steps->until()) break;
    until = std::min(Clock::now() + longest, steps->until());
    ready = -1;
  }
  const ssize_t got = ready == 1 ? ::read(pipe, text.data(), text.size()) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

// A child that a server holds; there is one at most.
struct Held {
  pid_t parent = 0;
  pid_t child = 0;    // 0: there is none
  Descriptor handle;  // pidfd_open(2); invalid where there was no descriptor left
};

Held& held() {
  static Held one;
  // A copy of that process has not its child.
  if (one.parent == ::getpid()) return one;
  one.handle.release();
  one.child = 0;
  return one;
}

bool has_ended(const Held& one) {
  if (!one.handle.valid()) return ::waitpid(one.child, nullptr, WNOHANG) != 0;
  siginfo_t ending{};
  return ::waitid(P_PIDFD, static_cast<id_t>(one.handle.get()), &ending, WEXITED | WNOHANG) != 0 ||
         ending.si_pid != 0;
}

// False: not within that time.
template <class Condition>
bool wait_until(Condition condition, Clock::time_point until) {
  constexpr timespec kPause{0, 200'000};
  while (!condition()) {
    if (Clock::now() >= until) return false;
    ::nanosleep(&kPause, nullptr);
  }
  return true;
}

// False: it is still there.
bool wait_for_held(Clock::time_point until) {
  Held& one = held();
  if (one.child == 0) return true;
  if (!wait_until([&] { return has_ended(one); }, until)) return false;
  one.handle.reset(-1);
  one.child = 0;
  return true;
}

// Until it is waited for, the number is its own.
void end(pid_t child, Clock::time_point until) {
  ::kill(child, SIGKILL);
  until = std::max(until, Clock::now() + kEndTimeMax);
  if (wait_until([&] { return ::waitpid(child, nullptr, WNOHANG) != 0; }, until)) return;
  held() = {::getpid(), child, Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)))};
}

// `steps` may be none.
Status run_in_child(std::chrono::milliseconds longest, const std::function<Status()>& work,
                    std::vector<int> kept, Steps* steps) {
  auto until = Clock::now() + longest;
  if (!wait_for_held(until))
    return Status::failure(ETIMEDOUT, "a file server does not answer an earlier try");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailedCall{errno, "cannot make a pipe"};
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return FailedCall{errno, "cannot make a process to try that"};
  if (child == 0) tell_of(writing.get(), work, std::move(kept));
  writing.reset(-1);
  const std::string said = read_answer(reading.get(), longest, steps, until);
  const bool is_late = Clock::now() >= until;
  end(child, until);
  int error_number = 0;
  if (said.size() < sizeof(error_number)) {
    return is_late ? Status::failure(ETIMEDOUT, "it takes too long")
                   : Status::failure(ECANCELED, "the process that tried that was killed");
  }
  std::memcpy(&error_number, said.data(), sizeof(error_number));
  if (error_number == 0) return {};
  return Status::failure(error_number, said.substr(sizeof(error_number)));
}

Status try_to_restore(const std::function<Status()>& work, Steps* steps) {
  Status tried = run_in_child(std::chrono::seconds(kCallsSecondsMax), work, {}, steps);
  const int error_number = tried.error_number();
  if (error_number != ETIMEDOUT && error_number != ECANCELED) return tried;
  return Status::failure(ECANCELED,
                         "the process that tried what a restore does was stopped, or waits for a "
                         "file server that does not answer");
}

}  // namespace

Status try_in_child(std::chrono::milliseconds longest, const std::function<Status()>& work,
                    std::vector<int> kept) {
  return run_in_child(longest, work, std::move(kept), nullptr);
}

Status try_restoring(const std::function<Status()>& work) { return try_to_restore(work, nullptr); }

Status try_restoring_each(std::size_t count, const std::function<Status(std::size_t)>& step) {
  Steps steps(count);
  if (!steps.valid()) return Status::no_memory("no memory to try what a restore does");
  const auto work = [&]() -> Status {
    for (std::size_t i = 0; i < count; ++i) {
      PAWL_TRY(step(i));
      steps.note();
    }
    return {};
  };
  return try_to_restore(work, &steps);
}

SharedBytes::SharedBytes(std::size_t count) : count_(count) {
  void* const mapped =
      ::mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped != MAP_FAILED) data_ = static_cast<std::byte*>(mapped);
}

SharedBytes::~SharedBytes() {
  if (data_ != nullptr) ::munmap(data_, count_);
}

void SharedBytes::note(const std::string& text) const {
  if (data_ == nullptr) return;
  const std::size_t count = std::min(text.size(), count_ - 1);
  std::memcpy(data_, text.data(), count);
  data_[count] = std::byte{0};
}

std::string SharedBytes::noted() const {
  return data_ == nullptr ? "" : reinterpret_cast<const char*>(data_);
}

}  // namespace pawl::wsp
