// Runs a machine from its power on to its end, and saves it when the power fails.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "medium/status.h"
#include "wsp/vm/description.h"
#include "wsp/vm/directory.h"
#include "wsp/vm/judgement.h"

namespace pawl::wsp::vm {

enum class Beginning {
  kBoot,            // cold; a save that is whole is in the way, though it would be refused
  kDiscardAndBoot,  // cold, whatever was saved
  kRestore,         // from a valid save, or not at all
  kRestoreOrBoot,   // cold where the save is refused
};

struct RunOptions {
  Beginning beginning = Beginning::kBoot;
  // The machine; a restore takes that of the directory where this has none.
  std::optional<MachineDescription> description;
  bool trusts_memory = false;
  std::uint64_t rehearsals = 0;                  // at the beginning, at most kRehearsalsMax
  int fails_at_step = 0;                         // for tests
  std::function<void(const std::string&)> tell;  // a sentence for the operator
};

struct Ending {
  enum class What {
    kSaved,         // the power failed, or somebody asked for it; the save is valid
    kGuestEnded,    // it was switched off from within
    kQemuFailed,    // QEMU ended otherwise, or a save failed: `reason`
    kRefused,       // nothing was started: `refusal`, `reason`
    kSaveInTheWay,  // a cold boot would lose a save that is whole: `refusal`, `reason`
  };
  What what = What::kSaved;
  Refusal refusal = Refusal::kNone;
  std::string reason;
};

// Returns when the machine does not run any more.  The directory is locked until then.  A failure
// is one before the guest ran; it leaves a valid save valid.  Blocks signals: call it from a
// program's only thread.
Result<Ending> run_machine(MachineDirectory& directory, const RunOptions& options);

// Starts the machine's QEMU in a directory of its own and rehearses a save, without letting the
// guest run: what cannot be saved is named by the failure.
struct Trial {
  std::string qemu_version;
  std::vector<std::string> disk_files;
  double save_us = 0;
};
Result<Trial> try_machine(MachineDirectory& directory, const MachineDescription& description);

}  // namespace pawl::wsp::vm
