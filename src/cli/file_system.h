// What a directory's file system and disk promise, as far as they say.
#pragma once

#include <cstdint>
#include <string>

#include "medium/status.h"

namespace pawl::cli {

struct FileSystemFacts {
  std::string directory;  // real path
  bool has_proc = false;
  std::string type;                 // "ext4"
  std::string source;               // "/dev/sda1"
  std::string mount_point;          // empty: /proc/self/mountinfo does not show it, as in a chroot
  std::string options;              // of mount and file system
  std::uint64_t free_bytes = 0;     // MediumFile::kNotBounded: it tells of no bound
  std::uint64_t journal_bytes = 0;  // that each file takes beside it
  std::uint64_t first_journal_bytes = 0;  // and with which it begins, where the file is small
  std::uint64_t file_bytes_max = 0;       // by RLIMIT_FSIZE

  bool can_remove = true;   // what was created: no append-only directory
  bool can_create = false;  // the rest was tried with a file of our own only if so
  std::string create_reason;
  bool has_direct_io = false;
  bool has_attributes = false;
  bool has_allocation = false;

  std::string disk;         // "vda", empty when there is no one block device
  std::string write_cache;  // "write back", "write through", empty when not known
  bool has_fua = false;
};

// Creates a file without a name in the directory, and lets it go.
Result<FileSystemFacts> look_at_directory(const std::string& directory);

}  // namespace pawl::cli
