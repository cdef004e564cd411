// May a machine be restored from what its directory holds?
//
// Everything that can be known before a QEMU is started: that the save is whole, and that guest
// memory, device state, disks and description are those that were saved together.
#pragma once

#include <optional>
#include <string>

#include "medium/status.h"
#include "wsp/vm/description.h"
#include "wsp/vm/directory.h"
#include "wsp/vm/marker.h"

namespace pawl::wsp::vm {

// docs/wsp-vm.md has a table of them.
enum class Refusal {
  kNone,
  kNoSave,              // nothing was saved, or it was restored already
  kHalfSave,            // a save was begun and not finished
  kDamagedMarker,       // neither of its slots can be believed
  kNewerFormat,         // written by a newer Pawl
  kOtherGeneration,     // the device state is not of the marker's save
  kDamagedDeviceState,  // not the bytes that QEMU wrote
  kOtherOptions,        // the machine's description was changed, or another one is asked for
  kMemoryReplaced,      // another file, or none
  kMemoryTouched,       // written, or opened by somebody who may have written
  kDiskReplaced,        // another file
  kDiskChanged,         // written since
  kOtherQemu,           // another version; found when it has been started
  kLoadFailed,          // QEMU did not take the device state
};

// As it is told to users and scripts: "half-save".
const char* name_of(Refusal refusal);

struct Judgement {
  Refusal refusal = Refusal::kNone;
  std::string reason;  // a sentence; empty when the save is valid
  Marker marker;       // of a save; the generation also of one that is refused
  std::optional<MachineDescription> description;  // if it can be read
  // Of a save: what could not be looked at, now (ENOENT, EACCES, EIO of a disk).  It is neither
  // refused nor known to be valid then.
  Status unseen;

  bool is_valid() const { return refusal == Refusal::kNone && unseen.ok(); }
  // Whether all of a save seems to be there yet, though another machine is asked for, say, or a
  // part was replaced and may be put back.
  bool is_whole() const { return marker.is_save() && refusal != Refusal::kDamagedDeviceState; }
};

struct JudgementOptions {
  // The machine that is asked for, where one is.
  const MachineDescription* wanted = nullptr;
  // Takes memory that was read or mapped since the save as what it was: its sample still counts.
  bool trusts_memory = false;
};

// Nobody may run the machine meanwhile.  A failure is that of looking at the marker.
Result<Judgement> judge(const MachineDirectory& directory, MarkerFile& marker,
                        const JudgementOptions& options);

}  // namespace pawl::wsp::vm
