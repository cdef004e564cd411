// A disk that can lose its power.  Its files are real ones, for the kernel maps them; beside them
// it keeps what would be found after a power cut: what was flushed, and of what was done since
// some, none, or half.
//
// After a cut, each write that was not flushed is kept, dropped, or torn between sectors; of the
// changes of metadata (sizes, holes, marks) a file keeps a prefix.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "medium/medium.h"
#include "workload/content.h"

namespace pawl::test {

inline constexpr std::size_t kSectorBytes = 512;

// One file as it lies on the disk.
struct StoredFile {
  Content content;
  std::optional<Mark> mark;
};

// What a power cut leaves.
struct DiskState {
  StoredFile base;
  std::optional<Content> journal;  // nothing: the file has no journal
};

// What was done to a file: one write, or one change of its metadata.
struct Operation {
  enum class Kind { write, resize, zero, mark };
  Kind kind;
  std::uint64_t offset = 0;      // for resize: the size
  std::uint64_t length = 0;      // for zero
  std::vector<std::byte> bytes;  // for write
  std::optional<Mark> mark;      // for mark
};

// A file of which not everything is durable.
class UnflushedFile {
 public:
  explicit UnflushedFile(StoredFile durable) : durable_(std::move(durable)) {}

  void add(Operation operation) { pending_.push_back(std::move(operation)); }
  // Operations so far, and which of them a flush takes.
  std::uint64_t count() const { return flushed_ + pending_.size(); }
  void flush_first(std::uint64_t count);
  StoredFile after_power_cut(std::mt19937& random) const;

 private:
  StoredFile each_on_its_own(std::mt19937& random) const;
  StoredFile in_order_up_to_one(std::mt19937& random) const;

  StoredFile durable_;
  std::deque<Operation> pending_;
  std::uint64_t flushed_ = 0;
};

// The disk of one user file and its journal.  Any thread.
class SimulatedDisk {
 public:
  // Writes the files of `state` into an empty directory.
  SimulatedDisk(const DiskState& state, const std::string& path, unsigned seed);

  // Makes one of the states that a power cut at this moment can leave.
  using Cut = std::function<DiskState()>;
  // Called before and after all that happens, while nothing else does: the moments at which the
  // power may fail.
  using Moment = std::function<void(const Cut& cut)>;
  void watch(Moment moment);
  // A moment of the test's own choosing.
  DiskState cut_now();

  // A medium on this disk, which must outlive it.
  Result<std::unique_ptr<Medium>> open();

 private:
  class File;
  class DiskMedium;
  // Whether a name would be found again after a power cut.
  enum class Name { absent, in_doubt, present };

  DiskState cut();
  void moment();

  const std::string path_;
  std::mutex mutex_;  // guards all below, and orders what happens on the disk
  std::mt19937 random_;
  UnflushedFile base_;
  UnflushedFile journal_;
  std::optional<Mark> mark_;  // as the running program sees it
  Name journal_name_;
  Moment moment_;
};

}  // namespace pawl::test
