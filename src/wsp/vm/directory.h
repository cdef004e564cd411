// The directory of a machine: its files, and who has it.
#pragma once

#include <cstdint>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/directory/own_directory.h"

namespace pawl::wsp::vm {

class MachineDirectory {
 public:
  // Makes it if there is none and `make` says so.  EPERM: it is not this user's own, or others may
  // write to it: its description names a program to run.
  static Result<MachineDirectory> open(const std::string& path, bool make);

  std::string memory() const { return path_ + "/memory"; }
  std::string device_state() const { return path_ + "/device-state"; }
  std::string marker() const { return path_ + "/marker"; }
  // Where rehearsals write what a save writes into the marker.
  std::string rehearsal_marker() const { return path_ + "/marker.rehearsal"; }
  std::string description() const { return path_ + "/machine.json"; }
  std::string rehearsals() const { return path_ + "/rehearsals.json"; }
  // The named pipe of power-failure hooks.
  std::string power_pipe() const { return path_ + "/power"; }
  std::string control_socket() const { return path_ + "/control"; }
  const std::string& path() const { return path_; }
  int descriptor() const { return directory_.descriptor(); }

  // Whoever runs the machine has the lock, and so has its QEMU, which inherits the descriptor: an
  // orphan that still writes to the memory keeps others away.  EBUSY when others have it after
  // `wait_ms`.
  Status lock(int wait_ms);
  void unlock() { lock_.reset(-1); }
  int lock_descriptor() const { return lock_.get(); }
  // Whether somebody has the lock, without taking it for longer than a look; makes nothing.
  Result<bool> is_locked() const;

  // Whether a machine was ever begun here, as far as its files tell.
  bool has_machine() const;

  // Makes names durable.
  Status sync() const;

 private:
  MachineDirectory(std::string path, OwnDirectory directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  std::string path_;
  OwnDirectory directory_;
  Descriptor lock_;
};

// A new file for the guest's memory, all zeros, with all of its space reserved: a guest that
// touched memory for which there is no space would be killed.  ENOSPC where there is too little.
Status make_memory(const std::string& path, std::uint64_t bytes);

}  // namespace pawl::wsp::vm
