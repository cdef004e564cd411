// The file that QEMU writes its device state into: a header of a page, then QEMU's own stream.
#pragma once

#include <cstdint>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/vm/directory.h"

namespace pawl::wsp::vm {

inline constexpr std::uint64_t kDeviceStateHeaderBytes = 4096;

// What binds the stream to one save; zeros until the save has got that far.
struct DeviceStateHeader {
  std::uint64_t generation = 0;
  std::uint64_t save_id = 0;
};

class DeviceStateFile {
 public:
  // Makes the file if there is none, and reserves kReservedBytes of it, so that a save need not.
  static Result<DeviceStateFile> open_for_saves(const MachineDirectory& directory);
  static Result<DeviceStateFile> open_saved(const MachineDirectory& directory);

  // Reserves so much more.
  Status reserve(std::uint64_t more_bytes);

  // Zeros the header, and the first bytes of the stream (by which a half save is known).
  Status forget();
  // Goes to the stream's beginning.
  Status rewind();
  // Handed to QEMU, which writes or reads from where this stands; the place is shared.
  int descriptor() const { return file_.get(); }

  // How far QEMU has written.
  Result<std::uint64_t> stream_bytes() const;
  // EBADMSG where the file is shorter.
  Result<std::uint32_t> stream_checksum(std::uint64_t bytes) const;
  Status write_header(const DeviceStateHeader& header);
  Result<DeviceStateHeader> read_header() const;
  // Whether a save has begun to write here.
  Result<bool> has_stream() const;
  // All of it, durable.
  Status flush();

 private:
  static Result<DeviceStateFile> open(const MachineDirectory& directory, int flags);
  DeviceStateFile(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  Descriptor file_;
  std::string path_;
};

}  // namespace pawl::wsp::vm
