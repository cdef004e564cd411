// Watches over a kept program: lets it run, hears of a power failure, saves it.
#pragma once

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/budget/save_budget.h"
#include "wsp/directory/own_directory.h"
#include "wsp/power/power_sources.h"
#include "wsp/process/control.h"
#include "wsp/process/process.h"
#include "wsp/process/save.h"

namespace pawl::wsp {

struct SupervisionEnding {
  bool was_saved = false;
  ProgramEnding program;  // when it was not
  SaveTiming timing;      // when it was
};

// All by which a supervisor learns something: power failures, signals, requests.  It is made before
// the program is started, or what was saved is used up: that it cannot be made must cost nothing.
struct SupervisorEars {
  PowerSources power;
  Descriptor signals;
  SupervisorSocket control;
};

// Blocks the signals that supervise() hears, too: to be called before any thread is started.
Result<SupervisorEars> open_ears(const OwnDirectory& directory, const PowerSourceOptions& places);

// From a program whose threads all stand still; returns when it has ended, or was saved and is
// gone. A save that fails is told, and the program runs on;
// one that would fail, or take longer than the window, is told soon after the beginning, while
// there is power.  SIGTERM and SIGHUP are handed on to it, SIGINT and SIGQUIT where it has another
// session: else they reach it by themselves, from the terminal.
Result<SupervisionEnding> supervise(Process& process, SupervisorEars& ears, double window_us,
                                    const Process::Tell& tell, const StepHook& hook);

}  // namespace pawl::wsp
