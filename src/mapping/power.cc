#include "mapping/power.h"

#include <signal.h>

namespace pawl {
namespace {

void note_failure(int) { the_power_is_failing.store(true); }

}  // namespace

void watch_power_signal() {
  struct sigaction present{};
  if (::sigaction(SIGPWR, nullptr, &present) != 0) return;
  const bool is_unused = (present.sa_flags & SA_SIGINFO) == 0 && present.sa_handler == SIG_DFL;
  if (!is_unused) return;
  struct sigaction own{};
  own.sa_handler = note_failure;
  own.sa_flags = SA_RESTART;
  ::sigaction(SIGPWR, &own, nullptr);
}

}  // namespace pawl
