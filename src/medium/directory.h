// A directory that is opened once: what is done in it is done there, wherever its path may lead by
// then.  Its owner, or that of one above it, can put a symbolic link in its place at any moment.
#pragma once

#include <sys/stat.h>

#include <string>

#include "medium/descriptor.h"

namespace pawl {

class Directory {
 public:
  Directory() = default;
  // `path` ends in '/'.
  static Result<Directory> open(const std::string& path);
  // That of the file `path`, which is open as `file`: ENOENT when it has no such name there.
  static Result<Directory> open_of(const std::string& path, int file);

  const std::string& path() const { return path_; }
  // For openat(2) and its like, which answer EBADF where the program has closed it.
  int get() const { return descriptor_.is_open() ? descriptor_.get() : -1; }
  // Of the name itself, not of what a link leads to.  That nothing has the name is an answer; that
  // the directory cannot be searched is none.
  Result<bool> has(const std::string& name, const struct stat& file) const;
  // Makes the names in it durable.  EACCES, with what to do, where the user may not read it (a
  // directory of mode 0300, or 1733): can_flush() says so before anything has got a name.
  Status flush() const;
  Status can_flush() const { return open_to_flush().status(); }

 private:
  Directory(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  Result<Descriptor> open_to_flush() const;

  Descriptor descriptor_;
  std::string path_;  // for messages
};

// What is behind the last '/'.
inline std::string name_in_directory(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace pawl
