// What compiled code calls about its regions and about memory.

#include <cerrno>
#include <string>

#include "fase/abi.h"
#include "fase/program.h"
#include "fase/recovered_fase.h"
#include "fase/recovery_by_order.h"
#include "fase/thread.h"
#include "pawl/fase.h"

namespace {

using pawl::fase::Program;
using pawl::fase::RecoveredFase;
using pawl::fase::Thread;

void refuse_change(Thread& thread, const pawl_fase_kept& kept) {
  const std::string what =
      "a change of '" + std::string(kept.name) + "', which sections of " + kept.source +
      " read (have the changes and the reads in one source file, or the variable in the file),";
  thread.refuse(nullptr, 0, what.c_str(), true);
}

}  // namespace

extern "C" {

PAWL_PUBLIC void pawl_fase_register(const struct pawl_fase_function* begin,
                                    const struct pawl_fase_function* end) {
  Program::own().add(begin, end);
  pawl::fase::recover_by_order();
}

PAWL_PUBLIC void pawl_fase_keep(const struct pawl_fase_kept* begin,
                                const struct pawl_fase_kept* end) {
  Program::own().keep(begin, end);
}

PAWL_PUBLIC void pawl_fase_use_scheme(uint32_t scheme) {
  Program::own().use(pawl::fase::Scheme{scheme});
  pawl::fase::recover_by_order();
}

PAWL_PUBLIC void pawl_fase_undo(const void* at, size_t bytes) {
  Thread* const thread = Thread::in_fase();
  if (thread != nullptr && pawl::fase::is_in_window(at)) thread->will_store(at, bytes);
}

PAWL_PUBLIC void pawl_fase_cut(const struct pawl_fase_function* function, uint32_t region,
                               const void* live_ins) {
  if (Thread* const thread = Thread::in_fase()) thread->cut({function, region, live_ins});
}

PAWL_PUBLIC void pawl_fase_call(const struct pawl_fase_function* function, uint32_t region,
                                const void* live_ins) {
  if (Thread* const thread = Thread::in_fase()) thread->call({function, region, live_ins});
}

PAWL_PUBLIC void pawl_fase_call_indirect(const struct pawl_fase_function* function, uint32_t region,
                                         const void* live_ins, const void* callee) {
  Thread* const thread = Thread::in_fase();
  if (thread == nullptr) return;
  if (!thread->is_rehearsing() && Program::own().find(callee) == nullptr) {
    thread->refuse(function, function->regions[region].line,
                   "a call through a pointer of a function that was not compiled for it", true);
  }
  thread->call({function, region, live_ins});
}

PAWL_PUBLIC void pawl_fase_return(void) {
  if (Thread* const thread = Thread::in_fase()) thread->call_returned();
}

PAWL_PUBLIC void pawl_fase_stored(const void* at, size_t bytes) {
  if (pawl::fase::is_in_window(at)) Thread::current().stored(at, bytes);
}

PAWL_PUBLIC void* pawl_fase_volatile_target(void* at, size_t bytes) {
  Thread* const thread = Thread::in_fase();
  if (thread == nullptr || pawl::fase::is_in_window(at)) return at;
  if (const pawl_fase_kept* const kept = Program::own().kept_variables().find(at, bytes)) {
    refuse_change(*thread, *kept);
  }
  if (RecoveredFase* const recovered = thread->recovered()) return recovered->sink(bytes);
  return thread->is_rehearsing() ? thread->rehearsal()->sink(bytes) : at;
}

PAWL_PUBLIC void pawl_fase_volatile_load(const struct pawl_fase_function* function, uint32_t line,
                                         const void* at) {
  Thread* const thread = Thread::in_fase();
  if (thread == nullptr || !thread->is_armed() || pawl::fase::is_in_window(at) ||
      Program::own().is_constant(at)) {
    return;
  }
  thread->refuse(function, line, "a load of volatile memory", false);
}

PAWL_PUBLIC void pawl_fase_refuse(const struct pawl_fase_function* function, uint32_t line,
                                  const char* what) {
  if (Thread* const thread = Thread::in_fase()) thread->refuse(function, line, what, false);
}

PAWL_PUBLIC void pawl_fase_refuse_unarmed(const struct pawl_fase_function* function, uint32_t line,
                                          const char* what) {
  Thread* const thread = Thread::in_fase();
  if (thread != nullptr && !thread->is_rehearsing()) thread->refuse(function, line, what, true);
}

}  // extern "C"
