// A directory of the user's own, which nobody else can write: what lies in it is believed, and with
// the privileges that a restore has, done (docs/security.md).
#pragma once

#include <sys/un.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

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
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  int descriptor() const { return directory_.get(); }
  // A name by which this process reaches what lies in it, whatever the path leads to by now.
  std::string way_to(const std::string& name) const;

  // A regular file in it with one name, of this user, which nobody else can write; with O_CREAT in
  // `flags` made if there is none, of mode 0600.  ENOENT where there is none.
  Result<Descriptor> open_file(const std::string& name, int flags) const;
  // As open_file(), of a file that this call makes: what has its name is removed before.
  Result<Descriptor> make_file(const std::string& name) const;

  // All of a file that is no longer than `bytes_max` (EFBIG).  ENOENT where there is none.
  Result<std::string> read_file(const std::string& name, std::size_t bytes_max) const;
  // The whole text or none of it, durable on return; by way of NAME.new.
  Status write_file(const std::string& name, const std::string& text) const;

  // One in it that this call makes: EEXIST where there is one, whoever made that.
  Result<OwnDirectory> make_directory(const std::string& name) const {
    return make_in(directory_.get(), path_, name);
  }
  // As make_directory(), in a directory of whomever, which is open.
  static Result<OwnDirectory> make_in(int parent, const std::string& parent_path,
                                      const std::string& name);
  // Whether anything has that name in it.
  bool has(const std::string& name) const;
  // Its files, not directories in it.
  void remove_files() const;
  // One in it, with its files, if it is this user's own.
  void remove_directory(const std::string& name) const;

 private:
  static Result<OwnDirectory> open_in(int parent, const std::string& name, const std::string& path);
  OwnDirectory(std::string path, Descriptor directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  std::vector<std::string> names() const;

  std::string path_;
  Descriptor directory_;
};

// Gives the socket that name in it, in place of what has it; for this user alone to connect to,
// whatever the umask, and it listens for `waiting_max` connections.  Where that fails, the name is
// what it was.
Status listen_in(const OwnDirectory& directory, const std::string& name, const Descriptor& socket,
                 int waiting_max);

}  // namespace pawl::wsp
