// Who writes a file says so by the file's device and inode number, where every process of the
// machine can ask: so a writer is found whatever name the file has by now, or was opened by.
//
// A notice is a shared lock on one byte of the file of the time namespace (/proc/self/ns/time,
// time_namespaces(7)): one file for the processes of all users and containers, for hardly any has a
// time namespace of its own, and one that nobody can open for writing, so that nobody can lock
// others out.  The kernel answers for one byte, at one moment, and takes the lock back when its
// holder dies (fcntl(2), open file description locks).  docs/journal-format.md (Locks).
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl {

// An opener says that it is there before it looks at the file's mark; and, once the mark is its
// own, that it is the writer.
enum class Notice { opener, writer };

// Those of one opener, which go with it.  Not for several threads at once.
class WriterNotices {
 public:
  // Which byte of that file: how root finds the holder.
  static std::uint64_t byte_of(const struct stat& user, Notice notice);

  // ENOTSUP: there is no such file here, as without /proc.
  Status put(const struct stat& user, Notice notice);
  // Whether another opener has put that notice for the file.  EBUSY: somebody holds a lock over the
  // notices of many files, so that this one cannot be told.
  Result<bool> others_have(const struct stat& user, Notice notice);
  // The same, by the descriptor that others_have() or put() opened, which is_open(); for any number
  // of threads at once.
  Result<bool> ask(const struct stat& user, Notice notice) const;
  bool is_open() const { return file_.is_open(); }
  // For all who have the descriptor: a child that lives on may have it as well.
  void withdraw();
  // Which holds them; a number below 0 where there are none.
  const OpenFile& file() const { return file_.file(); }
  // Leaves them to the parent: for a forked child.
  void abandon() { file_.reset(-1); }

 private:
  Status open();

  Descriptor file_;
};

}  // namespace pawl
