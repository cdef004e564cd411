// What a machine is made of: all that a restored QEMU must be started with again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "medium/status.h"
#include "wsp/vm/directory.h"

namespace pawl::wsp::vm {

struct AddedDisk {
  std::string path;
  // At once under way, a power of two; 0: as disk_requests_max() says, see settle_requests().
  std::uint32_t requests_max = 0;
  std::string format = {};  // QEMU's name of it; empty: not looked at yet
};

struct MachineDescription {
  std::string qemu = "qemu-system-x86_64";
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::vector<AddedDisk> added_disks;
  std::vector<std::string> options;  // QEMU's own, as the user gave them
  // Files of disks, those added and those of `options`, backing files too; QEMU itself lists them.
  std::vector<std::string> disk_files;
  // What a save has to meet, and who says that the power fails.
  double window_ms = 0;
  std::string serial_line;

  // Whether a QEMU of the one can take over what a QEMU of the other has saved.  A number of
  // requests that is not settled is any.
  bool is_same_machine(const MachineDescription& other) const;
  // Where it cannot: the first difference, in words; `other` is the machine that is asked for.
  std::string difference_from(const MachineDescription& other) const;
};

// As text; equal descriptions have equal texts.
std::string text_of(const MachineDescription& description);
// EINVAL where the text is none.
Result<MachineDescription> parse_description(const std::string& text);

// Whole or not at all, and durable on return.
Status write_description(const MachineDescription& description, const MachineDirectory& directory);
struct StoredDescription {
  MachineDescription description;
  std::uint32_t checksum;  // of the file's content
};
// ENOENT where there is none; EINVAL where the file holds something else.
Result<StoredDescription> read_description(const MachineDirectory& directory);

// How many requests to a disk may be under way when the guest is stopped, so that they are done
// within half of the window: each has at most 1.25 MiB (what Linux makes of one by default), and
// the disk is taken to do 200 MB/s.  A power of two from 4 to 128, as QEMU's queue-size wants it.
// Limits of QEMU's own (throttling.*) would not help: they are lifted while a machine is stopped,
// and what they held back is let go at once.
std::uint32_t disk_requests_max(double window_ms);

// That number for all disks that have none.  A guest keeps the one that it was booted with: its
// driver has been told.
void settle_requests(MachineDescription& description);

}  // namespace pawl::wsp::vm
