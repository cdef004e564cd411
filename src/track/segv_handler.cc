#include "track/segv_handler.h"

#include <dlfcn.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "medium/inherited_memory.h"
#include "medium/medium.h"
#include "track/fault_table.h"

namespace pawl {

namespace {

// Handlers behind ours, the newest last.  More than one only when the program installs one past our
// wrappers: that one may itself hand on to ours, which then hands on to the one before.
constexpr std::size_t kChainedMax = 8;
constexpr std::size_t kKernelSignalSetBytes =
    8;  // the kernel's set is shorter than the C library's

std::array<struct sigaction, kChainedMax> chained;
std::atomic<std::size_t> chained_count{0};
std::atomic<bool> installed{false};

// Left in the unused end of a fault's siginfo_t, which the kernel hands over zeroed: how far down
// the chain the fault has come, should a chained handler hand it on to ours.
struct ChainMark {
  std::uint32_t magic = 0;
  std::uint32_t depth = 0;
};
constexpr std::uint32_t kChainMagic = 0x6c776170;

using SigactionFunction = int (*)(int, const struct sigaction*, struct sigaction*);
using SigmaskFunction = int (*)(int, const sigset_t*, sigset_t*);

// The C library's own, behind our wrappers of the same name.
SigactionFunction next_sigaction() {
  static std::atomic<SigactionFunction> function{nullptr};
  SigactionFunction found = function.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<SigactionFunction>(dlsym(RTLD_NEXT, "sigaction"));
    PAWL_ASSERT(found != nullptr);
    function.store(found, std::memory_order_relaxed);
  }
  return found;
}

SigmaskFunction next_sigmask() {
  static std::atomic<SigmaskFunction> function{nullptr};
  SigmaskFunction found = function.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<SigmaskFunction>(dlsym(RTLD_NEXT, "pthread_sigmask"));
    PAWL_ASSERT(found != nullptr);
    function.store(found, std::memory_order_relaxed);
  }
  return found;
}

// dlsym is not to be called from a signal handler, the wrappers may be.
__attribute__((constructor)) void find_next_functions() {
  (void)next_sigaction();
  (void)next_sigmask();
}

void on_segv(int signal_number, siginfo_t* info, void* context);

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_segv;
}

bool same_handler(const struct sigaction& left, const struct sigaction& right) {
  const bool left_takes_info = (left.sa_flags & SA_SIGINFO) != 0;
  const bool right_takes_info = (right.sa_flags & SA_SIGINFO) != 0;
  if (left_takes_info != right_takes_info) return false;
  return left_takes_info ? left.sa_sigaction == right.sa_sigaction
                         : left.sa_handler == right.sa_handler;
}

bool is_store(const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWriteFault = 2;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteFault) != 0;
#else
  (void)context;  // an armed page can be read, so a fault in it is a store
  return true;
#endif
}

void take_default_action(int signal_number, const siginfo_t* info) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  next_sigaction()(signal_number, &action, nullptr);
  // A fault happens again on return and takes the default action; a signal that was sent does not.
  if (info->si_code <= 0) (void)raise(signal_number);
}

void run_chained(const struct sigaction& action, int signal_number, siginfo_t* info,
                 void* context) {
  // As the kernel would have done it, but for SIGSEGV: the handler may itself store to armed pages.
  sigset_t mask = action.sa_mask;
  sigset_t interrupted;
  sigemptyset(&interrupted);
  std::memcpy(&interrupted, &static_cast<const ucontext_t*>(context)->uc_sigmask,
              kKernelSignalSetBytes);
  sigorset(&mask, &mask, &interrupted);
  sigdelset(&mask, SIGSEGV);
  next_sigmask()(SIG_SETMASK, &mask, nullptr);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal_number, info, context);
  } else {
    action.sa_handler(signal_number);
  }
}

void chain(int signal_number, siginfo_t* info, void* context) {
  char* const mark_place = reinterpret_cast<char*>(info) + sizeof *info - sizeof(ChainMark);
  ChainMark mark;
  std::memcpy(&mark, mark_place, sizeof mark);
  const std::uint32_t depth = mark.magic == kChainMagic ? mark.depth + 1 : 0;
  mark = {kChainMagic, depth};
  std::memcpy(mark_place, &mark, sizeof mark);

  const std::size_t count = chained_count.load(std::memory_order_acquire);
  if (depth >= count) return take_default_action(signal_number, info);

  struct sigaction& slot = chained[count - 1 - depth];
  const struct sigaction action = slot;
  const bool takes_info = (action.sa_flags & SA_SIGINFO) != 0;
  if (!takes_info && action.sa_handler == SIG_DFL) return take_default_action(signal_number, info);
  if (!takes_info && action.sa_handler == SIG_IGN) {
    // The kernel does not ignore a fault either: it would only happen again.
    if (info->si_code > 0) take_default_action(signal_number, info);
    return;
  }
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    slot = {};
    slot.sa_handler = SIG_DFL;
  }
  run_chained(action, signal_number, info, context);
}

void on_segv(int signal_number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool is_open = info->si_code == SEGV_ACCERR && is_store(context) &&
                       (inherited_memory::open_for_store(info->si_addr) ||
                        FaultTable::process().open_for_store(info->si_addr));
  if (!is_open) chain(signal_number, info, context);
  errno = saved_errno;
}

// Adds the program's handler to the chain, as the newest.
void remember(const struct sigaction& action) {
  const std::size_t count = chained_count.load(std::memory_order_relaxed);
  const bool is_known = count > 0 && same_handler(chained[count - 1], action);
  if (is_known || count == kChainedMax) {
    chained[count - 1] = action;
  } else {
    chained[count] = action;
    chained_count.store(count + 1, std::memory_order_release);
  }
}

// Handlers installed earlier may block every signal while they run.
void unblock_in_installed_handlers() {
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) {
    struct sigaction action{};
    if (next_sigaction()(signal_number, nullptr, &action) != 0) continue;
    const bool takes_info = (action.sa_flags & SA_SIGINFO) != 0;
    if (!takes_info && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) continue;
    if (signal_number == SIGSEGV || sigismember(&action.sa_mask, SIGSEGV) != 1) continue;
    sigdelset(&action.sa_mask, SIGSEGV);
    (void)next_sigaction()(signal_number, &action, nullptr);
  }
}

}  // namespace

void ensure_segv_handler() {
  struct sigaction current{};
  PAWL_ASSERT(next_sigaction()(SIGSEGV, nullptr, &current) == 0);
  if (is_ours(current)) return;
  remember(current);

  struct sigaction action{};
  action.sa_sigaction = on_segv;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  // Nothing may interrupt the handler while it holds a range's lock: no cancellation either, whose
  // signal sigfillset() leaves out.
  std::memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
  PAWL_ASSERT(next_sigaction()(SIGSEGV, &action, nullptr) == 0);
  installed.store(true, std::memory_order_release);

  unblock_in_installed_handlers();
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  PAWL_ASSERT(next_sigmask()(SIG_UNBLOCK, &segv, nullptr) == 0);
}

int program_sigaction(int signal_number, const struct sigaction* action,
                      struct sigaction* old_action) {
  struct sigaction wanted{};
  if (action != nullptr) {
    wanted = *action;
    sigdelset(&wanted.sa_mask, SIGSEGV);
  }
  const struct sigaction* const to_install = action == nullptr ? nullptr : &wanted;
  if (signal_number != SIGSEGV || !installed.load(std::memory_order_acquire)) {
    return next_sigaction()(signal_number, to_install, old_action);
  }

  struct sigaction current{};
  if (next_sigaction()(SIGSEGV, nullptr, &current) != 0) return -1;
  if (!is_ours(current)) return next_sigaction()(SIGSEGV, to_install, old_action);
  const std::size_t count = chained_count.load(std::memory_order_acquire);
  if (old_action != nullptr) *old_action = chained[count - 1];
  if (to_install != nullptr) {
    // What the program replaces is gone, as it would be without us in front.
    chained[0] = wanted;
    chained_count.store(1, std::memory_order_release);
  }
  return 0;
}

int program_sigmask(int how, const sigset_t* set, sigset_t* old_set) {
  if (set == nullptr || how == SIG_UNBLOCK) return next_sigmask()(how, set, old_set);
  sigset_t wanted = *set;
  sigdelset(&wanted, SIGSEGV);
  return next_sigmask()(how, &wanted, old_set);
}

}  // namespace pawl
