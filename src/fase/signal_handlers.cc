// Signal handlers: the kernel calls them in the midst of a FASE, and of the run-time itself.
//
// What was compiled with sections asks the run-time at each step, which would answer for the FASE
// that was interrupted: so that is out of sight for as long as the handler runs.
#include <algorithm>
#include <array>
#include <cstdint>

#include "fase/abi.h"
#include "fase/thread.h"

namespace {

using pawl::fase::Thread;

// What stands where a handler returns to: the call of rt_sigreturn(2), as debuggers and unwinders
// know it.
#if defined(__x86_64__)
constexpr std::array<std::uint8_t, 9> kReturnOfHandler = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
                                                          0x00, 0x00, 0x0f, 0x05};
#elif defined(__aarch64__)
constexpr std::array<std::uint8_t, 8> kReturnOfHandler = {0x68, 0x11, 0x80, 0xd2,
                                                          0x01, 0x00, 0x00, 0xd4};
#elif defined(__riscv)
constexpr std::array<std::uint8_t, 8> kReturnOfHandler = {0x93, 0x08, 0xb0, 0x08,
                                                          0x73, 0x00, 0x00, 0x00};
#else
#error "what does a signal handler return to here?"
#endif

bool is_return_of_handler(const void* address) {
  const auto* const code = static_cast<const std::uint8_t*>(address);
  return std::equal(kReturnOfHandler.begin(), kReturnOfHandler.end(), code);
}

}  // namespace

extern "C" {

PAWL_PUBLIC void* pawl_fase_handler_begin(const void* returns_to) {
  Thread* const interrupted = pawl::fase::the_thread;
  // Outside of sections a handler does what it likes, as does what waits for signals only there.
  if (interrupted == nullptr || !(interrupted->is_in_fase() || interrupted->is_armed()))
    return nullptr;
  if (!is_return_of_handler(returns_to)) return nullptr;
  Thread::set_current(&Thread::of_handlers());
  return interrupted;
}

PAWL_PUBLIC void pawl_fase_handler_end(void* interrupted) {
  if (interrupted != nullptr) Thread::set_current(static_cast<Thread*>(interrupted));
}

}  // extern "C"
