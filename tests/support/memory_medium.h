// A disk in memory that holds one user file and its side file.  Nothing fails on it, and what was
// written is there: recovery on it takes microseconds, so that a test may try very many states.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "medium/medium.h"
#include "workload/content.h"

namespace pawl::test {

// What lies on the disk.
struct StoredDisk {
  Content base;
  std::optional<Mark> mark;
  std::optional<Content> journal;  // nothing: the file has no journal
};

// Where the user file's bytes are kept.
enum class Backing {
  pages,        // in a Content: fast to make; map_private() fails
  memory_file,  // in a memfd, which can be mapped: what a Mapping needs for a window
  mapped,       // the same, the journal too, and both can be loaded and stored in place
};

struct MemoryDiskOptions {
  Backing backing = Backing::pages;
  bool can_mark = true;  // as a file system with extended attributes
  // What a file may come to hold before it is told ENOSPC.
  std::uint64_t file_bytes_max = std::uint64_t{1} << 40;
  std::uint64_t block_bytes = kPageBytes;  // of the journal
  std::string name = "file";
  // Other disks, by their names: what forms groups with this one.
  std::function<Result<std::unique_ptr<Medium>>(const std::string& name)> open_sibling = {};
};

// Any thread may use the media of a disk and their files.
class MemoryDisk {
 public:
  // Throws std::runtime_error when there is no memory file to be had.
  explicit MemoryDisk(StoredDisk state, const MemoryDiskOptions& options = {});
  ~MemoryDisk();

  // Opens the file.  The medium must not outlive the disk.  As on a file system, there may be
  // several at a time, and only one of them holds the journal.
  std::unique_ptr<Medium> open();

  // What lies there now.  A journal that was not published is not found.
  StoredDisk state() const;

 private:
  class DiskMedium;

  const MemoryDiskOptions options_;
  const std::string path_;
  const std::string journal_path_;
  std::unique_ptr<MediumFile> base_;
  mutable std::mutex mutex_;  // guards all below
  std::optional<Mark> mark_;
  std::shared_ptr<MediumFile> journal_;  // has the journal's name; may be null
  bool journal_is_held_ = false;
};

}  // namespace pawl::test
