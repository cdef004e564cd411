// Descriptors that may not be closed yet.  The kernel drops all fcntl() locks that a process has on
// a file when it closes any descriptor of it, and the program may hold some.  So a descriptor that
// Pawl is done with waits here until those locks are released, and serves whoever opens the file
// again: there is never more than one that nobody uses for each way to open a file.  A lock that
// another thread takes between the question and the close goes: to keep each descriptor would keep
// that of every file ever used, and its file system from being unmounted.  pawl.h says so.
#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>

#include "medium/descriptor.h"

namespace pawl::parked_descriptors {

// Closes it; or lets it wait, where anybody holds fcntl() locks on the file, or that cannot be
// found out.  Any thread may call.
void close(Descriptor descriptor);
// One of the file that was opened with these flags; invalid when there is none.  Closes those
// whose files are not locked any more.
Descriptor take(const struct stat& file, int flags);

// A file of the program's that is opened by its name, and at the end closed as above.
class OpenedFile {
 public:
  // As open(2), with errno where it fails; but makes no file where a symbolic link leads.
  OpenedFile(const std::string& path, int flags, mode_t mode);
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  ~OpenedFile() { close(std::move(descriptor_)); }

  int get() const { return descriptor_.get(); }
  bool valid() const { return descriptor_.valid(); }

 private:
  Descriptor descriptor_;
};

}  // namespace pawl::parked_descriptors
