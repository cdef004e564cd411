// The directory of a machine: its files, and who has it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/directory/own_directory.h"
#include "wsp/directory/whose.h"

namespace pawl::wsp::vm {

// The files in it.  Each is reached from the open directory, and believed only if it is this user's
// own (OwnDirectory): the description names a program to run, and the files that its guest writes.
inline constexpr const char* kMemoryFile = "memory";
inline constexpr const char* kDeviceStateFile = "device-state";
inline constexpr const char* kMarkerFile = kMachineMarkerFile;
inline constexpr const char* kRehearsalMarkerFile = "marker.rehearsal";  // instead of the marker
inline constexpr const char* kDescriptionFile = kMachineDescriptionFile;
inline constexpr const char* kPowerPipe = "power";  // of power-failure hooks

class MachineDirectory {
 public:
  // Makes it if there is none and `make` says so.  EPERM: it is not this user's own, or others may
  // write to it.
  static Result<MachineDirectory> open(const std::string& path, bool make);
  // Of one that is open already.
  explicit MachineDirectory(OwnDirectory directory) : directory_(std::move(directory)) {}

  const OwnDirectory& files() const { return directory_; }
  const std::string& path() const { return directory_.path(); }
  std::string path_of(const std::string& name) const { return directory_.path_of(name); }
  int descriptor() const { return directory_.descriptor(); }

  // Whoever runs the machine has the lock, and so has its QEMU, which inherits the descriptor: an
  // orphan that still writes to the memory keeps others away.  EBUSY when others have it after
  // `wait_ms`.
  Status lock(int wait_ms);
  int lock_descriptor() const { return lock_.get(); }
  // Whether somebody has the lock, without taking it for longer than a look; makes nothing.
  Result<bool> is_locked() const;

  // Whether a machine was ever begun here, as far as its files tell.
  bool has_machine() const;

  // Makes names durable.
  Status sync() const;

 private:
  OwnDirectory directory_;
  Descriptor lock_;
};

// A new file for the guest's memory, all zeros, with all of its space reserved: a guest that
// touched memory for which there is no space would be killed.  ENOSPC where there is too little.
Status make_memory(const MachineDirectory& directory, std::uint64_t bytes);

}  // namespace pawl::wsp::vm
