#include "wsp/process/ending_signals.h"

#include <initializer_list>

namespace pawl::wsp {

EndingSignals::EndingSignals() {
  sigset_t ending;
  ::sigemptyset(&ending);
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) ::sigaddset(&ending, signal);
  ::sigprocmask(SIG_UNBLOCK, &ending, &before_);
}

void EndingSignals::wait_again() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace pawl::wsp
