// Watches over a kept program: lets it run, hears of a power failure, saves it.
#pragma once

#include "medium/status.h"
#include "wsp/budget/save_budget.h"
#include "wsp/power/power_sources.h"
#include "wsp/process/process.h"
#include "wsp/process/save.h"

namespace pawl::wsp {

struct SupervisionEnding {
  bool was_saved = false;
  ProgramEnding program;  // when it was not
  SaveTiming timing;      // when it was
};

// Blocks the signals that supervise() hears: before the program is started, and any thread is.
void block_supervised_signals();

// From a program whose threads all stand still; returns when it has ended, or was saved and is
// gone. A save that fails is told, and the program runs on;
// one that would fail is told soon after the beginning, while there is power.  SIGTERM and SIGHUP
// are handed on to it; SIGINT and SIGQUIT reach it by itself, from the terminal.
Result<SupervisionEnding> supervise(Process& process, PowerSources& power,
                                    const Process::Tell& tell, const StepHook& hook);

}  // namespace pawl::wsp
