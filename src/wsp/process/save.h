// Saves a program when the power fails: section 4 of Narayanan and Hodson's "Whole-System
// Persistence" for one process.  Its memory is in the file already; what is saved is the rest.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "medium/status.h"
#include "wsp/budget/save_budget.h"
#include "wsp/process/process.h"

namespace pawl::wsp {

// Called before each step, with its number from 1 on; for tests, which let the supervisor die
// there.
using StepHook = std::function<void(int)>;

constexpr int kSaveStepsCount = 8;

// Stops the program and saves it.  On success it stands still for ever, with the image marked and
// durable: kill() it.  On failure there is no marker but the reason, and the program runs on.
Result<SaveTiming> save(Process& process, const StepHook& hook);

// The same work up to the marker, which is not written; the program runs on.  ECANCELED: it gave
// way to what may be the power's failure.
Result<SaveTiming> rehearse_save(Process& process);

// What a save would be like.
struct SaveOutlook {
  double took_us = 0;  // of the processor's time, without what was flushed
  std::string burden;  // of what the program has that takes most of it, and how many
  Status restorable;   // by a command of this process's limits and privileges
};

// As rehearse_save(), but there is no haste: nothing is flushed, and nobody else has to wait.
// Fails as a save would, and by ETIME when a thread does not stop at once.
Result<SaveOutlook> check_savable(Process& process);

}  // namespace pawl::wsp
