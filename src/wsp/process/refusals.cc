#include "wsp/process/refusals.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>

#include "wsp/process/annex.h"
#include "wsp/process/layout.h"

namespace pawl::wsp {

namespace {

using tracing::Rule;
using tracing::When;

constexpr const char* kOneProcess =
    "only one process is kept, and its memory is not copied; turn off what forks (Redis: save '', "
    "appendonly no)";
constexpr const char* kKernelQueue =
    "what waits in the kernel's queue would be lost; the program has to do without";
constexpr const char* kOutside = "what it ties together would not be there again; leave it out";

constexpr const char* kUnreadable =
    "the kernel does not tell it, so that others would reach the socket without it";

constexpr const char* kThreadsShare =
    "threads are kept that share files and directories (CLONE_FILES, CLONE_FS), with neither a "
    "pidfd nor namespaces of their own, and that are traced";
// A thread that is not traced would not even be known of.
constexpr std::uint32_t kNotOfThreads = CLONE_UNTRACED | CLONE_PIDFD | CLONE_NEWNS |
                                        CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                        CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr const char* kOfProcessor = "that state of the processor is not made again";
constexpr const char* kMachinePorts = "the right to use the machine's own ports is not kept";

// Which Debian 12 does not name.
constexpr std::uint32_t kMapShadowStack = 453;
constexpr std::uint32_t kSeal = 462;
constexpr std::uint32_t kShadowStackEnable = 0x5001;  // arch_prctl(2)
constexpr std::uint32_t kTaggedAddresses = 0x4002;
constexpr std::uint32_t kTcpAddKey = 38;      // TCP_AO_ADD_KEY
constexpr std::uint32_t kGuardInstall = 102;  // MADV_GUARD_INSTALL

constexpr std::array kRefusals = {
    RefusedCall{{SYS_fork}, "fork", ENOSYS, kOneProcess},
    RefusedCall{{SYS_vfork}, "vfork", ENOSYS, kOneProcess},
    RefusedCall{{SYS_clone, {When::lacks_bits, 0, CLONE_THREAD}}, "clone", ENOSYS, kOneProcess},
    RefusedCall{{SYS_clone, {When::lacks_bits, 0, CLONE_FILES}},
                "clone(CLONE_THREAD)",
                ENOSYS,
                kThreadsShare},
    RefusedCall{
        {SYS_clone, {When::lacks_bits, 0, CLONE_FS}}, "clone(CLONE_THREAD)", ENOSYS, kThreadsShare},
    RefusedCall{{SYS_clone, {When::has_bits, 0, kNotOfThreads}},
                "clone(CLONE_THREAD)",
                ENOSYS,
                kThreadsShare},
    RefusedCall{{SYS_io_uring_setup},
                "io_uring_setup",
                ENOSYS,
                "requests in flight would be lost; the program has to use other calls"},
    RefusedCall{{SYS_io_setup},
                "io_setup",
                ENOSYS,
                "requests in flight would be lost; the program has to use other calls"},
    RefusedCall{{SYS_shmat},
                "shmat",
                ENOSYS,
                "memory of System V is shared with what is not kept; use mmap(2)"},
    RefusedCall{{SYS_memfd_create},
                "memfd_create",
                ENOSYS,
                "the file would be gone; use a file with a name on /dev/shm"},
    RefusedCall{{SYS_memfd_secret}, "memfd_secret", ENOSYS, "no such memory survives"},
    RefusedCall{{SYS_userfaultfd}, "userfaultfd", ENOSYS, "page faults are not handed on again"},
    RefusedCall{{SYS_remap_file_pages}, "remap_file_pages", ENOSYS, "each page is where it is"},
    RefusedCall{{SYS_pkey_alloc}, "pkey_alloc", ENOSPC, "keys of memory are not kept"},
    RefusedCall{{SYS_madvise, {When::equals, 2, kGuardInstall}},
                "madvise(MADV_GUARD_INSTALL)",
                EINVAL,
                "guards of that kind are not kept; use mprotect(2)"},
    RefusedCall{{SYS_process_madvise}, "process_madvise", ENOSYS, "use madvise(2)"},
    RefusedCall{{kSeal}, "mseal", ENOSYS, "memory that is sealed is not made again as such"},
    RefusedCall{{kMapShadowStack}, "map_shadow_stack", ENOSYS, kOfProcessor},
    RefusedCall{{SYS_arch_prctl, {When::equals, 0, kShadowStackEnable}},
                "arch_prctl(ARCH_SHSTK_ENABLE)",
                EOPNOTSUPP,
                kOfProcessor},
    RefusedCall{{SYS_arch_prctl, {When::equals, 0, ARCH_REQ_XCOMP_PERM}},
                "arch_prctl(ARCH_REQ_XCOMP_PERM)",
                EOPNOTSUPP,
                kOfProcessor},
    RefusedCall{{SYS_arch_prctl, {When::equals, 0, kTaggedAddresses}},
                "arch_prctl(ARCH_ENABLE_TAGGED_ADDR)",
                EINVAL,
                kOfProcessor},
    RefusedCall{{SYS_modify_ldt, {When::has_bits, 0, 1}}, "modify_ldt", ENOSYS, kOfProcessor},
    RefusedCall{{SYS_prctl, {When::equals, 0, PR_SET_SYSCALL_USER_DISPATCH}},
                "prctl(PR_SET_SYSCALL_USER_DISPATCH)",
                EINVAL,
                "the program's own filters are not kept"},
    RefusedCall{{SYS_prctl, {When::equals, 0, PR_SCHED_CORE}, {When::has_bits, 1, 3}},
                "prctl(PR_SCHED_CORE)",
                EINVAL,
                "which processors' cores are shared with whom is not kept"},
    RefusedCall{{SYS_ioperm}, "ioperm", EPERM, kMachinePorts},
    RefusedCall{{SYS_iopl}, "iopl", EPERM, kMachinePorts},
    RefusedCall{{SYS_ptrace}, "ptrace", EPERM, "a program has one tracer, and Pawl is it"},
    RefusedCall{{SYS_seccomp}, "seccomp", EINVAL, "the program's own filters are not kept"},
    RefusedCall{{SYS_prctl, {When::equals, 0, PR_SET_SECCOMP}},
                "prctl(PR_SET_SECCOMP)",
                EINVAL,
                "the program's own filters are not kept"},
    RefusedCall{{SYS_unshare}, "unshare", EPERM, kOutside},
    RefusedCall{{SYS_setns}, "setns", EPERM, kOutside},
    RefusedCall{{SYS_chroot}, "chroot", EPERM, kOutside},
    RefusedCall{{SYS_pivot_root}, "pivot_root", EPERM, kOutside},
    RefusedCall{{SYS_inotify_init}, "inotify_init", ENOSYS, kKernelQueue},
    RefusedCall{{SYS_inotify_init1}, "inotify_init1", ENOSYS, kKernelQueue},
    RefusedCall{{SYS_fanotify_init}, "fanotify_init", ENOSYS, kKernelQueue},
    RefusedCall{{SYS_perf_event_open}, "perf_event_open", ENOSYS, kKernelQueue},
    RefusedCall{{SYS_bpf}, "bpf", EPERM, kOutside},
    RefusedCall{{SYS_mq_open}, "mq_open", ENOSYS, kKernelQueue},
    RefusedCall{{SYS_msgget}, "msgget", ENOSYS, kKernelQueue},
    RefusedCall{{SYS_semget}, "semget", ENOSYS, kKernelQueue},
    RefusedCall{{SYS_socketpair}, "socketpair", EOPNOTSUPP, "use pipe(2) or eventfd(2)"},
    // The kernel tells nobody of it, so that no save would.
    RefusedCall{{SYS_setsockopt,
                 {When::equals, 1, SOL_SOCKET},
                 {When::equals, 2, SO_ATTACH_REUSEPORT_CBPF}},
                "setsockopt(SO_ATTACH_REUSEPORT_CBPF)",
                ENOPROTOOPT,
                "the program's own filters are not kept"},
    RefusedCall{{SYS_setsockopt,
                 {When::equals, 1, SOL_SOCKET},
                 {When::equals, 2, SO_ATTACH_REUSEPORT_EBPF}},
                "setsockopt(SO_ATTACH_REUSEPORT_EBPF)",
                ENOPROTOOPT,
                "the program's own filters are not kept"},
    RefusedCall{{SYS_setsockopt, {When::equals, 1, IPPROTO_TCP}, {When::equals, 2, TCP_MD5SIG}},
                "setsockopt(TCP_MD5SIG)",
                ENOPROTOOPT,
                kUnreadable},
    RefusedCall{{SYS_setsockopt, {When::equals, 1, IPPROTO_TCP}, {When::equals, 2, TCP_MD5SIG_EXT}},
                "setsockopt(TCP_MD5SIG)",
                ENOPROTOOPT,
                kUnreadable},
    RefusedCall{{SYS_setsockopt, {When::equals, 1, IPPROTO_TCP}, {When::equals, 2, kTcpAddKey}},
                "setsockopt(TCP_AO_ADD_KEY)",
                ENOPROTOOPT,
                kUnreadable},
    RefusedCall{{SYS_setsockopt, {When::equals, 1, IPPROTO_IP}, {When::equals, 2, IP_IPSEC_POLICY}},
                "setsockopt(IP_XFRM_POLICY)",
                ENOPROTOOPT,
                kUnreadable},
    RefusedCall{{SYS_setsockopt, {When::equals, 1, IPPROTO_IP}, {When::equals, 2, IP_XFRM_POLICY}},
                "setsockopt(IP_XFRM_POLICY)",
                ENOPROTOOPT,
                kUnreadable},
    RefusedCall{
        {SYS_setsockopt, {When::equals, 1, IPPROTO_IPV6}, {When::equals, 2, IPV6_IPSEC_POLICY}},
        "setsockopt(IPV6_XFRM_POLICY)",
        ENOPROTOOPT,
        kUnreadable},
    RefusedCall{
        {SYS_setsockopt, {When::equals, 1, IPPROTO_IPV6}, {When::equals, 2, IPV6_XFRM_POLICY}},
        "setsockopt(IPV6_XFRM_POLICY)",
        ENOPROTOOPT,
        kUnreadable},
    RefusedCall{{SYS_timer_create},
                "timer_create",
                ENOTSUP,
                "use setitimer(2) or timerfd_create(2), which are kept"},
    RefusedCall{{SYS_add_key}, "add_key", ENOSYS, kOutside},
    RefusedCall{{SYS_request_key}, "request_key", ENOSYS, kOutside},
    RefusedCall{{SYS_keyctl}, "keyctl", ENOSYS, kOutside},
    RefusedCall{{SYS_pidfd_open}, "pidfd_open", ENOSYS, "other processes are not kept"},
    RefusedCall{{SYS_landlock_restrict_self},
                "landlock_restrict_self",
                EOPNOTSUPP,
                "the program's own restrictions are not kept"},
};

constexpr std::uint32_t kMemoryHigh = kMemoryStart >> 32;
constexpr std::uint32_t kMemoryEndHigh = kMemoryEnd >> 32;

constexpr std::array kMemoryRules = {
    Rule{SYS_mmap},
    Rule{SYS_munmap},
    Rule{SYS_mremap},
    Rule{SYS_brk},
    // What lies between is in the memory file already; the program's own code is above.
    Rule{SYS_mprotect, {When::has_bits, 2, PROT_WRITE}, {When::high_below, 0, kMemoryHigh}},
    Rule{SYS_mprotect, {When::has_bits, 2, PROT_WRITE}, {When::high_from, 0, kMemoryEndHigh}},
    Rule{SYS_pkey_mprotect, {When::has_bits, 2, PROT_WRITE}},
    Rule{SYS_mprotect, {When::has_bits, 2, PROT_GROWSDOWN}},
    Rule{SYS_madvise, {When::equals, 2, MADV_DONTNEED}},
    Rule{SYS_madvise, {When::equals, 2, MADV_FREE}},
    Rule{SYS_madvise, {When::equals, 2, MADV_REMOVE}},
    Rule{SYS_madvise, {When::equals, 2, 24}},  // MADV_DONTNEED_LOCKED
    // The C library falls back to clone(2), whose flags a filter can see.
    Rule{SYS_clone3},
    Rule{SYS_close_range},
    Rule{kAnnexDone},
};

bool holds(const tracing::Condition& condition, std::span<const std::uint64_t> arguments) {
  const auto low = static_cast<std::uint32_t>(arguments[condition.argument]);
  switch (condition.when) {
    case When::equals:
      return low == condition.value;
    case When::has_bits:
      return (low & condition.value) != 0;
    case When::lacks_bits:
      return (low & condition.value) == 0;
    case When::high_below:
      return arguments[condition.argument] >> 32 < condition.value;
    case When::high_from:
      return arguments[condition.argument] >> 32 >= condition.value;
    case When::always:
      break;
  }
  return true;
}

}  // namespace

std::span<const RefusedCall> refusals() { return kRefusals; }

const RefusedCall* refusal_of(std::uint64_t number, std::span<const std::uint64_t> arguments) {
  for (const RefusedCall& refusal : kRefusals) {
    if (refusal.rule.number == number && holds(refusal.rule.first, arguments) &&
        holds(refusal.rule.second, arguments))
      return &refusal;
  }
  return nullptr;
}

std::vector<tracing::Rule> all_rules(int memory_descriptor) {
  const auto kept = static_cast<std::uint32_t>(memory_descriptor);
  std::vector<Rule> rules(kMemoryRules.begin(), kMemoryRules.end());
  // Not those that every program makes without end: read(2), write(2).
  for (const std::uint32_t call :
       {SYS_close, SYS_dup, SYS_dup2, SYS_dup3, SYS_fcntl, SYS_ioctl, SYS_ftruncate, SYS_fallocate})
    rules.push_back({call, {When::equals, 0, kept}});
  rules.push_back({SYS_dup2, {When::equals, 1, kept}});
  rules.push_back({SYS_dup3, {When::equals, 1, kept}});
  for (const RefusedCall& refusal : kRefusals) rules.push_back(refusal.rule);
  return rules;
}

}  // namespace pawl::wsp
