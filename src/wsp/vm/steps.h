// The steps of a save and of a restore, by number, and a failure at any of them.
#pragma once

#include <sys/types.h>

namespace pawl::wsp::vm {

// docs/wsp-vm.md lists the same.
enum class Step : int {
  kSaveBegins = 1,          // word of a power failure was heard
  kStopAsked = 2,           // QEMU was told to stop the guest, and to save
  kStopped = 3,             // the guest is stopped and its disks are flushed
  kDeviceStateWritten = 4,  // QEMU has written the device state
  kDeviceStateBound = 5,    // its header is written
  kMarkerTorn = 6,          // a part of the marker is written
  kMarkerWritten = 7,       // the save is valid
  kQemuEnded = 8,           // the QEMU that saved has ended
  kSealed = 9,              // the memory's times are in the marker
  kRestoreBegins = 21,      // the save was found valid
  kRestoreMarked = 22,      // the marker says that a QEMU was given the save
  kQemuStarted = 23,        // it runs, and the guest does not
  kLoading = 24,            // it was told to load the device state
  kLoaded = 25,             // it has done so
  kMarkerCleared = 26,      // the save is not valid any more
  kGuestRuns = 27,          // the guest was told to run on
};

// Every number from the first to the last of a save, and of a restore, is a step's.
inline constexpr bool is_step(int number) {
  return (number >= static_cast<int>(Step::kSaveBegins) &&
          number <= static_cast<int>(Step::kSealed)) ||
         (number >= static_cast<int>(Step::kRestoreBegins) &&
          number <= static_cast<int>(Step::kGuestRuns));
}

// For tests: a failure of everything at one step.  Step 0 is none.
class FailurePoint {
 public:
  explicit FailurePoint(int step = 0) : step_(step) {}
  bool is_at(Step step) const { return static_cast<int>(step) == step_; }
  // At its step, kills QEMU (unless that is 0) and this process, without any farewell.
  void reach(Step step, pid_t qemu) const;

 private:
  int step_;
};

}  // namespace pawl::wsp::vm
