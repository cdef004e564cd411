// System calls of one thread, of which the n-th fails, alone.  A thread that no filter holds judges
// each of them, so that it does not matter which signals are blocked where the call is made.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

namespace pawl::test {

class FailingSystemCalls {
 public:
  // From now on and until the process ends, for this thread and those that it starts.
  explicit FailingSystemCalls(const std::vector<long>& numbers) {
    std::promise<int> listener;
    std::thread([this, future = listener.get_future()]() mutable { judge(future.get()); }).detach();
    listener.set_value(filter(numbers));
    is_there_ = listener_ >= 0;
  }
  FailingSystemCalls(const FailingSystemCalls&) = delete;
  FailingSystemCalls& operator=(const FailingSystemCalls&) = delete;

  // False: there is no such filter here.
  bool is_there() const { return is_there_; }

  // Of those of this thread from now on, until pass(), the n-th fails.
  void fail(long number, int error_number) {
    thread_.store(static_cast<std::uint32_t>(::syscall(SYS_gettid)));
    error_number_ = error_number;
    made_.store(0);
    failing_.store(number);
  }
  // Returns how many there were.
  long pass() {
    failing_.store(-1);
    thread_.store(0);
    return made_.load();
  }

 private:
  int filter(const std::vector<long>& numbers) {
    std::vector<sock_filter> rules;
    rules.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const long number : numbers) {
      rules.push_back(
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
      rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    }
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
      listener_ = static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                             SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    }
    return listener_;
  }

  void judge(int listener) {
    for (;;) {
      seccomp_notif call{};
      if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
        if (errno == EINTR || errno == ENOENT) continue;
        return;
      }
      const bool fails = call.pid == thread_.load() && made_.fetch_add(1) == failing_.load();
      seccomp_notif_resp answer{};
      answer.id = call.id;
      answer.error = fails ? -error_number_ : 0;
      answer.flags = fails ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
  }

  int listener_ = -1;
  bool is_there_ = false;
  std::atomic<std::uint32_t> thread_{0};
  std::atomic<long> made_{0};
  std::atomic<long> failing_{-1};
  int error_number_ = 0;
};

}  // namespace pawl::test
