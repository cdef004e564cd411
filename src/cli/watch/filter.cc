#include "cli/watch/filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace pawl::cli::watch {

namespace {

enum class When : std::uint8_t { always, has_bits, lacks_bits, equals };

// A call that stops the program, when the low half of an argument is as it says.  Several rules for
// one call are alternatives.
struct Rule {
  std::uint32_t number;
  When when = When::always;
  std::uint8_t argument = 0;
  std::uint32_t value = 0;
};

constexpr std::uint32_t low(unsigned long request) { return static_cast<std::uint32_t>(request); }

constexpr std::array kRules = {
    // Memory.  Mappings without a file matter only where they are put over others.
    Rule{SYS_mmap, When::has_bits, 3, MAP_FIXED},
    Rule{SYS_mmap, When::lacks_bits, 3, MAP_ANONYMOUS},
    Rule{SYS_munmap},
    Rule{SYS_mremap},
    Rule{SYS_msync},
    Rule{SYS_remap_file_pages},
    Rule{SYS_pkey_mprotect},
    // Bytes and sizes.
    Rule{SYS_write},
    Rule{SYS_writev},
    Rule{SYS_pwrite64},
    Rule{SYS_pwritev},
    Rule{SYS_pwritev2},
    Rule{SYS_sendfile},
    Rule{SYS_splice},
    Rule{SYS_copy_file_range},
    Rule{SYS_truncate},
    Rule{SYS_ftruncate},
    Rule{SYS_fallocate},
    Rule{SYS_ioctl, When::equals, 1, low(FICLONE)},
    Rule{SYS_ioctl, When::equals, 1, low(FICLONERANGE)},
    Rule{SYS_ioctl, When::equals, 1, low(FIDEDUPERANGE)},
    Rule{SYS_io_submit},
    Rule{SYS_io_uring_setup},
    // Durability.
    Rule{SYS_fsync},
    Rule{SYS_fdatasync},
    Rule{SYS_sync},
    Rule{SYS_syncfs},
    Rule{SYS_sync_file_range},
    // Names, descriptors, locks.
    Rule{SYS_open},
    Rule{SYS_openat},
    Rule{SYS_creat},
    Rule{SYS_unlink},
    Rule{SYS_unlinkat},
    Rule{SYS_rename},
    Rule{SYS_renameat},
    Rule{SYS_renameat2},
    Rule{SYS_sendmsg},
    Rule{SYS_sendmmsg},
    Rule{SYS_flock},
    Rule{SYS_fcntl, When::equals, 1, F_SETLK},
    Rule{SYS_fcntl, When::equals, 1, F_SETLKW},
    Rule{SYS_fcntl, When::equals, 1, F_OFD_SETLK},
    Rule{SYS_fcntl, When::equals, 1, F_OFD_SETLKW},
    // Processes.
    Rule{SYS_setsid},
    Rule{SYS_exit_group},
};

constexpr std::size_t kInstructionsMax = 8 + kRules.size() * 5;

constexpr std::uint32_t kX32Bit = 0x40000000;  // calls of the x32 ABI, which no library of ours has

class FilterProgram {
 public:
  void add(std::uint16_t code, std::uint32_t value, std::uint8_t if_true = 0,
           std::uint8_t if_false = 0) {
    instructions_[count_++] = sock_filter{code, if_true, if_false, value};
  }
  sock_fprog whole() { return {static_cast<unsigned short>(count_), instructions_.data()}; }

 private:
  std::array<sock_filter, kInstructionsMax> instructions_{};
  std::size_t count_ = 0;
};

void add_rule(FilterProgram& program, const Rule& rule) {
  constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
  constexpr std::uint16_t kEqual = BPF_JMP | BPF_JEQ | BPF_K;
  constexpr std::uint16_t kBits = BPF_JMP | BPF_JSET | BPF_K;
  constexpr std::uint16_t kReturn = BPF_RET | BPF_K;
  if (rule.when == When::always) {
    program.add(kEqual, rule.number, 0, 1);
    program.add(kReturn, SECCOMP_RET_TRACE);
    return;
  }
  program.add(kEqual, rule.number, 0, 4);
  program.add(kLoad, static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8u * rule.argument);
  const bool wants_true = rule.when != When::lacks_bits;
  program.add(rule.when == When::equals ? kEqual : kBits, rule.value, wants_true ? 0 : 1,
              wants_true ? 1 : 0);
  program.add(kReturn, SECCOMP_RET_TRACE);
  // The accumulator held an argument: the number again, for the rules that follow.
  program.add(kLoad, offsetof(seccomp_data, nr));
}

}  // namespace

int install_filter() {
  FilterProgram program;
  program.add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  program.add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  program.add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  program.add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  program.add(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1);
  program.add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  for (const Rule& rule : kRules) add_rule(program, rule);
  program.add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_fprog whole = program.whole();
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0) return 0;
  if (errno != EACCES) return errno;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0 ? 0 : errno;
}

}  // namespace pawl::cli::watch
