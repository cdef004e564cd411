// Which file it was, and whether it has changed since.
#pragma once

#include <cstdint>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/vm/directory.h"

namespace pawl::wsp::vm {

struct FileIdentity {
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t born_ns = 0;         // 0 where the file system does not keep it
  std::int64_t modified_ns = 0;     // mtime
  std::int64_t changed_ns = 0;      // ctime
  std::int64_t accessed_ns = 0;     // atime
  std::uint32_t head_checksum = 0;  // of block devices, whose times say nothing: see identify()
  std::uint32_t is_device = 0;
  // Of the file's device, or which it is; as it was found: no marker has it, and is_same_file()
  // leaves it out, for it may differ after the machine was started anew.
  std::uint64_t device = 0;

  bool is_same_file(const FileIdentity& other) const {
    return is_same_file_grown(other) && size_bytes == other.size_bytes;
  }
  // As is_same_file(), of a file that may have got another size.
  bool is_same_file_grown(const FileIdentity& other) const {
    return inode == other.inode && born_ns == other.born_ns && is_device == other.is_device;
  }
  bool is_unchanged(const FileIdentity& other) const {
    return modified_ns == other.modified_ns && changed_ns == other.changed_ns &&
           head_checksum == other.head_checksum;
  }
  // As is_unchanged(), where the host may have died before the times of `other` were durable: then
  // the file has earlier ones.
  bool is_unchanged_since(const FileIdentity& other) const {
    return modified_ns <= other.modified_ns && changed_ns <= other.changed_ns &&
           head_checksum == other.head_checksum;
  }
};

// Of a disk, to look at it.  Waits for nothing: what stands behind its name may be a pipe by now.
Result<Descriptor> open_disk(const std::string& path, int flags);

// Of a regular file by its inode alone.  Of a block device its size and the checksum of its first
// 64 KiB, where file systems keep what changes with every mount.
Result<FileIdentity> identify(const std::string& path);
// Of the guest's memory.
Result<FileIdentity> identify_memory(const MachineDirectory& directory);
// Of an open file.
Result<FileIdentity> identify_open(int descriptor, const std::string& path);

// Makes the file durable, its times too (which fdatasync(2) does not).
Status flush_times(const std::string& path);

// A checksum of kMemorySamplePages pages, drawn by `seed`: other content is noticed, a change of
// few pages is not.
inline constexpr std::uint64_t kMemorySamplePages = 64;
Result<std::uint32_t> sample_checksum(int descriptor, std::uint64_t size_bytes, std::uint64_t seed);

// Sets the times of access and modification so that the next read or mapping of the file is seen in
// the former, where the file system is not mounted noatime (relatime updates it when it is older
// than the time of modification).
Status arm_access_time(int descriptor, const std::string& path);

}  // namespace pawl::wsp::vm
