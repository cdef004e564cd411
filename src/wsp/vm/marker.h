// The marker: says which save is whole, and binds guest memory, device state and disks to it.
// docs/wsp-vm.md draws it byte by byte.
//
// The file holds two slots of a page each; of those whose checksum is right the one with the higher
// sequence number counts.  A write that is torn therefore leaves what was there before.  That the
// guest runs is written into both, and durable in both before the guest runs: no damage to one slot
// can bring back a save that the guest has outlived.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/vm/directory.h"
#include "wsp/vm/file_identity.h"

namespace pawl::wsp::vm {

enum class MarkerState : std::uint32_t {
  kRunning = 1,    // no save: the guest runs, or ran when it was lost
  kSaved = 2,      // whole; the QEMU that saved may still have ended in any way
  kSealed = 3,     // as kSaved, and QEMU had ended before the memory's times were taken
  kRestoring = 4,  // as kSaved: a QEMU was given the save, and the guest has not run yet
};

inline constexpr std::size_t kDisksMax = 16;
inline constexpr std::size_t kVersionTextBytes = 64;

struct Marker {
  MarkerState state = MarkerState::kRunning;
  std::uint64_t generation = 0;          // one more each time that the guest begins to run
  std::uint64_t save_id = 0;             // drawn at random for each save
  std::uint64_t saved_at_ns = 0;         // CLOCK_REALTIME
  std::uint64_t device_state_bytes = 0;  // without its header
  std::uint32_t device_state_checksum = 0;
  std::uint32_t memory_sample_checksum = 0;
  std::uint32_t description_checksum = 0;
  std::string qemu_version;  // at most kVersionTextBytes - 1 bytes
  FileIdentity memory;
  std::vector<FileIdentity> disks;  // at most kDisksMax

  bool is_save() const { return state != MarkerState::kRunning; }
};

inline constexpr std::size_t kMarkerSlotBytes = 4096;
using MarkerSlot = std::array<std::byte, kMarkerSlotBytes>;

MarkerSlot encode(const Marker& marker, std::uint64_t sequence);
struct NumberedMarker {
  Marker marker;
  std::uint64_t sequence;
};
// EBADMSG: torn, damaged, or never written.  ENOTSUP: of a newer Pawl.
Result<NumberedMarker> decode(const MarkerSlot& slot);

class MarkerFile {
 public:
  // Makes the file if there is none.  What it holds is not looked at.
  static Result<MarkerFile> open(const MachineDirectory& directory, const char* name = kMarkerFile);
  // Only to read(); ENOENT where there is none.
  static Result<MarkerFile> open_to_read(const MachineDirectory& directory);

  // EBADMSG where neither slot can be believed, ENOTSUP where one is of a newer Pawl; ENODATA where
  // nothing was ever written.
  Result<Marker> read();

  // Into the slot that does not count.  Durable on return.  With `torn` only the first half is
  // written: for tests.
  Status write(const Marker& marker, bool torn = false);

  // That the guest of this generation runs: in both slots, each durable before the other begins.
  Status clear(std::uint64_t generation);

 private:
  MarkerFile(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Status write_slot(std::size_t slot, const Marker& marker, std::size_t bytes);
  Status learn_sequence();

  Descriptor file_;
  std::string path_;
  bool knows_sequence_ = false;
  std::uint64_t sequence_ = 0;
  std::size_t newest_slot_ = 1;
};

}  // namespace pawl::wsp::vm
