#include "cli/watch/sandbox.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tracing/process_memory.h"

namespace pawl::cli::watch {

namespace {

// How a commit takes an error of a call.
enum class Need {
  vital,    // it fails, or the file is not closed
  useful,   // some do, with some files and trackers
  harmless  // it does without
};

struct NeededCall {
  std::uint32_t number;
  const char* name;
  Need need;
};

// The list of docs/preload.md.
constexpr std::array kNeededCalls = {
    NeededCall{SYS_fcntl, "fcntl", Need::vital},
    NeededCall{SYS_pwrite64, "pwrite64", Need::vital},
    NeededCall{SYS_pwritev2, "pwritev2", Need::useful},
    NeededCall{SYS_fdatasync, "fdatasync", Need::vital},
    NeededCall{SYS_fsync, "fsync", Need::vital},
    NeededCall{SYS_fallocate, "fallocate", Need::useful},
    NeededCall{SYS_futex, "futex", Need::useful},
    NeededCall{SYS_mmap, "mmap", Need::useful},
    NeededCall{SYS_munmap, "munmap", Need::useful},
    NeededCall{SYS_ioctl, "ioctl", Need::useful},
    NeededCall{SYS_pread64, "pread64", Need::useful},
    NeededCall{SYS_statx, "statx", Need::useful},
    NeededCall{SYS_ftruncate, "ftruncate", Need::useful},
    NeededCall{SYS_mprotect, "mprotect", Need::useful},
    NeededCall{SYS_madvise, "madvise", Need::useful},
    NeededCall{SYS_openat, "openat", Need::useful},
    NeededCall{SYS_read, "read", Need::useful},
    NeededCall{SYS_close, "close", Need::useful},
    NeededCall{SYS_rt_sigprocmask, "rt_sigprocmask", Need::useful},
    NeededCall{SYS_fremovexattr, "fremovexattr", Need::vital},
    NeededCall{SYS_unlinkat, "unlinkat", Need::vital},
    NeededCall{SYS_lseek, "lseek", Need::harmless},
    NeededCall{SYS_getrusage, "getrusage", Need::harmless},
    NeededCall{SYS_clone3, "clone3", Need::harmless},
    NeededCall{SYS_sched_setscheduler, "sched_setscheduler", Need::harmless},
};

// A filter's answer to one call, and whether that depends on the call's arguments.
struct FilterAnswer {
  std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
  bool looks_at_arguments = false;
};

// Runs classic BPF as the kernel would, for a call whose arguments are zeros.  What is no filter
// that the kernel takes ends as one that kills: it is not installed either, and nothing is said.
class FilterRun {
 public:
  FilterRun(std::span<const sock_filter> filter, std::uint32_t number) : filter_(filter) {
    data_.nr = static_cast<int>(number);
    data_.arch = AUDIT_ARCH_X86_64;
  }

  FilterAnswer answer() {
    // Jumps go forward only.
    for (std::size_t at = 0; at < filter_.size(); ++at) {
      const sock_filter& step = filter_[at];
      switch (BPF_CLASS(step.code)) {
        case BPF_RET:
          answer_.action = BPF_RVAL(step.code) == BPF_A ? a_ : step.k;
          return answer_;
        case BPF_JMP:
          at += jump(step);
          break;
        default:
          compute(step);
      }
    }
    return answer_;
  }

 private:
  std::uint32_t& memory(std::uint32_t index) { return memory_[index % memory_.size()]; }

  std::uint32_t load(std::uint32_t offset) {
    std::uint32_t value = 0;
    if (offset > sizeof(data_) - sizeof(value)) return 0;
    if (offset >= offsetof(seccomp_data, args)) answer_.looks_at_arguments = true;
    std::memcpy(&value, reinterpret_cast<const char*>(&data_) + offset, sizeof(value));
    return value;
  }

  std::size_t jump(const sock_filter& step) const {
    const std::uint32_t other = BPF_SRC(step.code) == BPF_X ? x_ : step.k;
    switch (BPF_OP(step.code)) {
      case BPF_JA:
        return step.k;
      case BPF_JEQ:
        return a_ == other ? step.jt : step.jf;
      case BPF_JGT:
        return a_ > other ? step.jt : step.jf;
      case BPF_JGE:
        return a_ >= other ? step.jt : step.jf;
      default:  // BPF_JSET
        return (a_ & other) != 0 ? step.jt : step.jf;
    }
  }

  void compute(const sock_filter& step) {
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
      case BPF_LDX: {
        std::uint32_t& to = BPF_CLASS(step.code) == BPF_LD ? a_ : x_;
        const auto mode = BPF_MODE(step.code);
        to = mode == BPF_ABS   ? load(step.k)
             : mode == BPF_MEM ? memory(step.k)
             : mode == BPF_LEN ? static_cast<std::uint32_t>(sizeof(data_))
                               : step.k;
        return;
      }
      case BPF_ST:
        memory(step.k) = a_;
        return;
      case BPF_STX:
        memory(step.k) = x_;
        return;
      case BPF_MISC:
        (BPF_MISCOP(step.code) == BPF_TAX ? x_ : a_) = BPF_MISCOP(step.code) == BPF_TAX ? a_ : x_;
        return;
      default:
        calculate(step);
    }
  }

  void calculate(const sock_filter& step) {
    const std::uint32_t other = BPF_SRC(step.code) == BPF_X ? x_ : step.k;
    switch (BPF_OP(step.code)) {
      case BPF_ADD:
        a_ += other;
        return;
      case BPF_SUB:
        a_ -= other;
        return;
      case BPF_MUL:
        a_ *= other;
        return;
      case BPF_DIV:
        a_ = other == 0 ? 0 : a_ / other;
        return;
      case BPF_AND:
        a_ &= other;
        return;
      case BPF_OR:
        a_ |= other;
        return;
      case BPF_XOR:
        a_ ^= other;
        return;
      case BPF_LSH:
        a_ = other < 32 ? a_ << other : 0;
        return;
      case BPF_RSH:
        a_ = other < 32 ? a_ >> other : 0;
        return;
      default:  // BPF_NEG
        a_ = ~a_ + 1;
    }
  }

  std::span<const sock_filter> filter_;
  seccomp_data data_{};
  FilterAnswer answer_;
  std::uint32_t a_ = 0;
  std::uint32_t x_ = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> memory_{};
};

void add(std::string& list, const char* name) {
  if (!list.empty()) list += ", ";
  list += name;
}

}  // namespace

SandboxVerdict judge_sandbox(std::span<const sock_filter> filter) {
  SandboxVerdict verdict;
  for (const NeededCall& call : kNeededCalls) {
    const FilterAnswer answer = FilterRun(filter, call.number).answer();
    switch (answer.action & SECCOMP_RET_ACTION_FULL) {
      case SECCOMP_RET_ALLOW:
      case SECCOMP_RET_LOG:
        if (answer.looks_at_arguments) add(verdict.may_break, call.name);
        break;
      case SECCOMP_RET_ERRNO:
        if (call.need == Need::harmless) break;
        add(call.need == Need::vital && !answer.looks_at_arguments ? verdict.breaks
                                                                   : verdict.may_break,
            call.name);
        break;
      case SECCOMP_RET_TRACE:
      case SECCOMP_RET_USER_NOTIF:
        add(verdict.may_break, call.name);
        break;
      default:  // it kills, or raises SIGSYS
        add(answer.looks_at_arguments ? verdict.may_break : verdict.breaks, call.name);
    }
  }
  return verdict;
}

std::optional<SandboxVerdict> judge_sandbox_of(const Call& call) {
  const bool is_prctl = call.number == SYS_prctl;
  const std::uint64_t mode = call.arguments[is_prctl ? 1 : 0];
  const std::uint64_t filter_mode =
      is_prctl ? std::uint64_t{SECCOMP_MODE_FILTER} : std::uint64_t{SECCOMP_SET_MODE_FILTER};
  const std::uint64_t strict_mode =
      is_prctl ? std::uint64_t{SECCOMP_MODE_STRICT} : std::uint64_t{SECCOMP_SET_MODE_STRICT};
  if (mode == strict_mode) return SandboxVerdict{"all but read and write", {}};
  if (mode != filter_mode) return std::nullopt;
  const auto header = tracing::read_object<sock_fprog>(call.thread, call.arguments[2]);
  if (!header || header->len == 0 || header->len > BPF_MAXINSNS) return std::nullopt;
  std::vector<sock_filter> filter(header->len);
  if (!tracing::read_memory(call.thread, reinterpret_cast<std::uint64_t>(header->filter),
                            filter.data(), filter.size() * sizeof(sock_filter))) {
    return std::nullopt;
  }
  return judge_sandbox(filter);
}

}  // namespace pawl::cli::watch
