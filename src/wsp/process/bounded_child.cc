#include "wsp/process/bounded_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "medium/descriptor.h"
#include "wsp/process/annex.h"
#include "wsp/process/rebuild_descriptors.h"

namespace pawl::wsp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kToldBytesMax = 4096;
// A killed child ends at once, unless a server holds it.
constexpr std::chrono::milliseconds kEndTimeMax{20};

std::chrono::milliseconds left_until(Clock::time_point until) {
  return std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
}

[[noreturn]] void tell_of(int pipe, const std::function<Status()>& work, std::vector<int> kept) {
  kept.push_back(pipe);
  close_all_but(kept);
  const Status done = work();
  const int error_number = done.error_number();
  std::string said(reinterpret_cast<const char*>(&error_number), sizeof(error_number));
  if (!done.ok()) said += done.text();
  said.resize(std::min(said.size(), kToldBytesMax));
  ::_exit(::write(pipe, said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
}

// One write(2) makes it.
std::string read_answer(int pipe, Clock::time_point until) {
  std::string text(kToldBytesMax, 0);
  pollfd told{pipe, POLLIN, 0};
  int ready = -1;
  do {
    const auto left = std::max(left_until(until), std::chrono::milliseconds(0));
    ready = ::poll(&told, 1, static_cast<int>(left.count()));
  } while (ready < 0 && errno == EINTR);
  const ssize_t got = ready == 1 ? ::read(pipe, text.data(), text.size()) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

// Until it is waited for, the number is its own.
void end(pid_t child, Clock::time_point until) {
  constexpr timespec kPause{0, 200'000};
  ::kill(child, SIGKILL);
  until = std::max(until, Clock::now() + kEndTimeMax);
  while (::waitpid(child, nullptr, WNOHANG) == 0 && Clock::now() < until)
    ::nanosleep(&kPause, nullptr);
}

}  // namespace

Status try_in_child(std::chrono::milliseconds longest, const std::function<Status()>& work,
                    std::vector<int> kept) {
  const auto until = Clock::now() + longest;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailedCall{errno, "cannot make a pipe"};
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return FailedCall{errno, "cannot make a process to try that"};
  if (child == 0) tell_of(writing.get(), work, std::move(kept));
  writing.reset(-1);
  const std::string said = read_answer(reading.get(), until);
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

Status try_restoring(const std::function<Status()>& work) {
  Status tried = try_in_child(std::chrono::seconds(kCallsSecondsMax), work);
  const int error_number = tried.error_number();
  if (error_number != ETIMEDOUT && error_number != ECANCELED) return tried;
  return Status::failure(ECANCELED,
                         "the process that tried what a restore does was stopped, or waits for a "
                         "file server that does not answer");
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
