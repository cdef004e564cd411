// Saves a running machine when the power fails, and rehearses that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/budget/save_budget.h"
#include "wsp/vm/device_state.h"
#include "wsp/vm/directory.h"
#include "wsp/vm/machine.h"
#include "wsp/vm/marker.h"
#include "wsp/vm/steps.h"

namespace pawl::wsp::vm {

// Once nobody maps the memory any more: sets its times so that whoever does is noticed, and
// `marker`, which the caller writes, to a sealed save with these times.
Status seal_memory(const MachineDirectory& directory, Marker& marker);

class Saver {
 public:
  // Opens all that a save needs, so that the save need not.  Leaves a save that is there as it is.
  // `machine` and `marker` outlive this.
  static Result<Saver> open(const MachineDirectory& directory, MarkerFile& marker, Machine& machine,
                            const MachineDescription& description, std::uint64_t generation,
                            std::uint32_t description_checksum);

  // Before each save or rehearsal, while nothing is urgent.
  Status prepare();
  // It in two parts, of which the first leaves a save that is there as it is, and suffices.
  Status hand_over() { return machine_->prepare_save(state_); }
  Status forget_earlier() { return state_.forget(); }

  // After a rehearsal: reserves space for all that the device state can become.
  Status reserve();

  // As Saver::open() has it, where it has changed since.
  void describe(std::uint32_t description_checksum) {
    marker_.description_checksum = description_checksum;
  }

  // Stops the guest and writes all that is transient, the marker last; durable on return.
  // `heard_ns` (CLOCK_MONOTONIC) is where the time begins.  After a failure there is no save.
  Result<SaveTiming> save(std::uint64_t heard_ns, const FailurePoint& failure);

  // After save(): ends QEMU, and binds the memory's times to the save.  ESTALE: somebody has let
  // the guest run on after it was saved, and there is no save any more.  Any other failure leaves
  // the save valid as it is.
  Status seal(const FailurePoint& failure);

  // Whether the guest stands still since a rehearsal, after which QEMU could not let it run on
  // (somebody else has locked a disk).  Until it runs nothing can be saved.
  bool stands_still() const { return stands_still_; }
  // Tries once more where it does.
  Status go_on_at_last();

  // All of a save's work, with another marker; then the guest goes on, and is prepared for again.
  // After a failure the guest goes on too, if QEMU still does what it is told.
  Result<SaveTiming> rehearse();
  // The first half of that, by which the guest is stopped, and the second.
  Result<SaveTiming> try_save();
  Status go_on();

  // The memory's file, which was opened and stays the same, is in this directory from now on.  It
  // outlives this.
  void memory_is_in(const MachineDirectory& directory) { memory_directory_ = &directory; }

 private:
  Saver(Machine& machine, DeviceStateFile state, MarkerFile& marker, MarkerFile rehearsal,
        Descriptor memory)
      : machine_(&machine),
        state_(std::move(state)),
        marker_file_(&marker),
        rehearsal_file_(std::move(rehearsal)),
        memory_(std::move(memory)) {}
  Result<SaveTiming> save_into(MarkerFile& file, std::uint64_t heard_ns,
                               const FailurePoint& failure);
  Status bind(const FailurePoint& failure);

  Machine* machine_;
  DeviceStateFile state_;
  MarkerFile* marker_file_;
  MarkerFile rehearsal_file_;
  Descriptor memory_;
  const MachineDirectory* memory_directory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::vector<std::string> disk_files_;
  // What QEMU has open, as found when the machine began: at a save the names have to be theirs yet.
  FileIdentity memory_begun_;
  std::vector<FileIdentity> disks_begun_;
  bool stands_still_ = false;
  Marker marker_;  // as it will be, but for what a save finds out
};

}  // namespace pawl::wsp::vm
