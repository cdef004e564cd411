// A directory of the user's own, which nobody else can write: what lies in it is believed, and with
// the privileges that a restore has, done (docs/security.md).
#pragma once

#include <sys/un.h>

#include <string>
#include <utility>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl::wsp {

// Of a socket in a directory that is open.  Paths of sockets are short; this way any is.
sockaddr_un socket_in(int directory, const std::string& name);

class OwnDirectory {
 public:
  // Makes it if there is none and `make` says so, for this user alone.  EPERM: it belongs to
  // another user, or others may write to it.  ENOTDIR: it is a symbolic link, or no directory.
  static Result<OwnDirectory> open(const std::string& path, bool make);

  // As it was given: for messages.
  const std::string& path() const { return path_; }
  int descriptor() const { return directory_.get(); }
  // A name by which this process reaches what lies in it, whatever the path leads to by now.
  std::string way_to(const std::string& name) const;

  // A regular file in it with one name, of this user, which nobody else can write; with O_CREAT in
  // `flags` made if there is none, of mode 0600.  ENOENT where there is none.
  Result<Descriptor> open_file(const std::string& name, int flags) const;

 private:
  OwnDirectory(std::string path, Descriptor directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  std::string path_;
  Descriptor directory_;
};

}  // namespace pawl::wsp
