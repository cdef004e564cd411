// The process's SIGSEGV handler: asks whether a fault was a store to an armed page, and hands every
// other one on to the handler that the program has, or to the default action.
#pragma once

#include <signal.h>

namespace pawl {

// Installs the handler, or puts it back in front of one that the program has installed since.
// Cheap when nothing changed.  Calls are ordered by the caller.
void ensure_segv_handler();

// sigaction(2) as the program sees it: for SIGSEGV, while our handler is in front, it reads and
// replaces the program's handler behind ours.  Never lets SIGSEGV be blocked by a handler's mask.
int program_sigaction(int signal_number, const struct sigaction* action,
                      struct sigaction* old_action);

// pthread_sigmask(3) as the program sees it: a thread that blocks SIGSEGV would be killed by its
// first store to an armed page, so SIGSEGV stays unblocked.
int program_sigmask(int how, const sigset_t* set, sigset_t* old_set);

}  // namespace pawl
