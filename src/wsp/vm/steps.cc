#include "wsp/vm/steps.h"

#include <unistd.h>
#include <csignal>

namespace pawl::wsp::vm {

void FailurePoint::reach(Step step, pid_t qemu) const {
  if (!is_at(step)) return;
  if (qemu > 0) ::kill(qemu, SIGKILL);
  ::kill(::getpid(), SIGKILL);
}

}  // namespace pawl::wsp::vm
