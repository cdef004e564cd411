// Signal handlers: the kernel calls them anywhere, also in the midst of a FASE, of the run-time
// itself, or of malloc().
//
// What was compiled with sections asks the run-time at each step, which would answer for the FASE
// that was interrupted, and might change what it was about to change itself: so the thread's own
// Thread is out of sight for as long as the handler runs.  Only where it is in no FASE a handler
// gets it, for a FASE of its own or an allocation: POSIX lets it do that where it interrupts
// nothing that is not async-signal-safe.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "fase/abi.h"
#include "fase/program.h"
#include "fase/thread.h"
#include "medium/readable_memory.h"

namespace {

using pawl::fase::Program;
using pawl::fase::Thread;

// What stands where a handler returns to: the call of rt_sigreturn(2), as debuggers and unwinders
// know it; and where a program's code ends.
#if defined(__x86_64__)
constexpr std::uint64_t kCodeEnd = std::uint64_t{1} << 47;
constexpr std::array<std::uint8_t, 9> kReturnOfHandler = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
                                                          0x00, 0x00, 0x0f, 0x05};
#elif defined(__aarch64__)
constexpr std::uint64_t kCodeEnd = std::uint64_t{1} << 48;
constexpr std::array<std::uint8_t, 8> kReturnOfHandler = {0x68, 0x11, 0x80, 0xd2,
                                                          0x01, 0x00, 0x00, 0xd4};
#elif defined(__riscv)
constexpr std::uint64_t kCodeEnd = std::uint64_t{1} << 47;
constexpr std::array<std::uint8_t, 8> kReturnOfHandler = {0x93, 0x08, 0xb0, 0x08,
                                                          0x73, 0x00, 0x00, 0x00};
#else
#error "what does a signal handler return to here?"
#endif
constexpr std::uint64_t kCodeMin = 4096;

// Every call of a function that might be a handler comes here, mostly from the program's own code,
// which is there: a comparison of bytes, of which the first tells nearly all apart.  Whatever else
// it is may be none, and no memory at all: what a fibre's entry returns to is a mark.
bool is_return_of_handler(const void* address) {
  if (reinterpret_cast<std::uint64_t>(address) - kCodeMin >= kCodeEnd - kCodeMin) return false;
  if (!Program::has_code(address, kReturnOfHandler.size()) &&
      !pawl::is_readable(address, kReturnOfHandler.size()))
    return false;
  return std::memcmp(address, kReturnOfHandler.data(), kReturnOfHandler.size()) == 0;
}

}  // namespace

namespace pawl::fase {

// Never destroyed: handlers may come to the last.
union Thread::Kept {
  constexpr Kept() : thread(OfHandlers{}) {}
  ~Kept() {}
  Thread thread;
};
// Made with the program, and no variable of a function: the first handler would have its destructor
// registered, for which the C library locks and allocates.
constinit Thread::Kept Thread::kept_of_handlers_;

Thread& Thread::of_handlers() { return kept_of_handlers_.thread; }

// What it returns is the Thread of handlers; or where the handler interrupts another one that was
// lent the thread's own, that, which is lent again behind it.
Thread* Thread::enter_handler() {
  Thread* const before = the_thread;
  if (before == &of_handlers()) return nullptr;
  interrupted_thread = before;
  const bool is_lent = before != nullptr && before->is_lent_to_handler_;
  // Another handler may come in between.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  the_thread = &of_handlers();
  return is_lent ? before : &of_handlers();
}

void Thread::leave_handler(Thread* entered) {
  // With a lock held it keeps what it was lent.
  if (the_thread != &of_handlers() && the_thread != nullptr)
    the_thread->is_lent_to_handler_ = false;
  the_thread = interrupted_thread;
  // As in enter_handler().
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (entered != &of_handlers()) entered->is_lent_to_handler_ = true;
}

bool Thread::is_in_or_behind_fase() const {
  return is_in_fase() || is_armed_ || has_ended_in_log_ || is_unsettled_ || recovered_ != nullptr;
}

Thread& Thread::lend() {
  if (interrupted_thread != nullptr && interrupted_thread->is_in_or_behind_fase()) return *this;
  the_thread = interrupted_thread;
  // As in enter_handler().
  std::atomic_signal_fence(std::memory_order_seq_cst);
  interrupted_thread = &current();
  interrupted_thread->is_lent_to_handler_ = true;
  interrupted_thread->lines_.forget_hints();
  return *interrupted_thread;
}

void Thread::end_loan() {
  if (is_in_fase()) return;
  is_lent_to_handler_ = false;
  the_thread = &of_handlers();
}

Status Thread::check_not_in_handler() const {
  if (!is_of_handlers_) return {};
  return Status::failure(EBUSY, PAWL_ERROR_STILL_OPEN,
                         "a signal handler cannot allocate or free while it interrupts a "
                         "failure-atomic section; do it behind the section");
}

}  // namespace pawl::fase

extern "C" {

PAWL_PUBLIC void* pawl_fase_handler_begin(const void* returns_to) {
  return is_return_of_handler(returns_to) ? Thread::enter_handler() : nullptr;
}

PAWL_PUBLIC void pawl_fase_handler_end(void* entered) {
  if (entered != nullptr) Thread::leave_handler(static_cast<Thread*>(entered));
}

}  // extern "C"
