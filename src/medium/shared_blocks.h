// Blocks that a file shares with another (a reflink): cp(1), a snapshot or another program made one
// of the other.  A write of such a block takes a new one, and on a full disk fails.
//
// File systems of three kinds: those that know no such blocks (ext4); those that overwrite in place
// otherwise (XFS), where a file can be given blocks of its own beforehand; and those that never
// overwrite in place (btrfs), where nothing can be taken beforehand, and only the free space can be
// looked at.
//
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "medium/medium.h"

namespace pawl {

class SharedBlocks {
 public:
  // As MediumFile::find_shared() does, in the file of `descriptor`.
  Result<std::uint64_t> find(int descriptor, const std::string& path, std::uint64_t offset,
                             std::uint64_t end, const MediumFile::FoundShared& found);
  // As MediumFile::shared_unit_bytes() does.
  std::uint64_t unit_bytes(int descriptor);
  // Gives the file blocks of its own in [offset, end), and in some more of what is shared there:
  // one block at a time would wait for the disk once for each.
  Status unshare(int descriptor, const std::string& path, std::uint64_t offset, std::uint64_t end);

  // As MediumFile::check_overwrite() does.
  Status check_overwrite(int descriptor, const std::string& path, std::uint64_t bytes);

 private:
  enum class Kind { unknown, never_shared, may_be_shared, never_in_place };
  Kind kind_of(int descriptor);

  std::atomic<Kind> kind_{Kind::unknown};
  std::atomic<std::uint64_t> unit_bytes_{kPageBytes};
};

}  // namespace pawl
