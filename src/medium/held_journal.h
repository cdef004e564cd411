// The side file of a file that somebody else may write, open for reading, with a lock that asks its
// writer to keep records.  The kernel gives the lock back when the process dies.
#pragma once

#include <fcntl.h>

#include <memory>
#include <string>

#include "medium/descriptor.h"

namespace pawl {

// Which bytes of the side file are locked (docs/journal-format.md): the writer has all those where
// anything can stand; behind them there is one for each record, by its sequence number, and whoever
// needs the records from one on shares that.
inline constexpr off_t kWriterLockBytes = off_t{1} << 62;

inline struct flock lock_of_writer() {
  return {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = kWriterLockBytes, .l_pid = 0};
}

// Whether a writer has the side file, open as `side` or of this name.
Result<bool> has_writer(int side, const std::string& journal_path);
Result<bool> has_writer(const std::string& journal_path);

// Whether who may only read the side file has locked what a writer locks, and so keeps all out.
bool is_locked_by_reader(int side);

// As Medium::first_held_record(), of an open side file.  0, the first of all, where more locks than
// kHeldLocksMax had to be looked at: whoever may read the file can take any number.
inline constexpr int kHeldLocksMax = 16;
std::uint64_t first_held_record(int side);

class HeldJournal {
 public:
  // Takes the lock on an open side file, for all of its records.  `path` is its name.
  static Result<HeldJournal> hold(Descriptor side, const std::string& path);
  HeldJournal(HeldJournal&&) = default;
  HeldJournal& operator=(HeldJournal&&) = delete;
  ~HeldJournal();

  // From now on only the records from this one on are needed.
  Status keep_from(std::uint64_t sequence);
  MediumFile& file() { return *file_; }
  const std::string& path() const { return path_; }
  // False: it was removed, or another one took its place.
  bool has_its_name() const;
  Result<bool> has_writer() const { return pawl::has_writer(file_->descriptor(), path_); }
  // What is read from now on comes from where the writer put it.
  void forget_what_was_read() const;

 private:
  HeldJournal(std::unique_ptr<DescriptorFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  std::unique_ptr<DescriptorFile> file_;  // null: moved from
  std::string path_;
};

}  // namespace pawl
