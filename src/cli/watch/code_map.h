// Whose code made a system call, and so whether a preloaded library would have seen it.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/watch/elf_file.h"
#include "cli/watch/tracer.h"

namespace pawl::cli::watch {

enum class Origin {
  function,     // a function of libc's that the preload face stands before
  raw,          // the program's or a library's own system call, syscall(3), or another C library
  stream,       // libc's stdio
  inside_libc,  // libc by itself: a function that the face does not stand before, a thread of
                // libc's
};

// The libraries that were read, for all processes: there are few, and they are shared.
class Libraries {
 public:
  // `interposed` are the names of the functions that the preload face stands before.
  explicit Libraries(std::set<std::string> interposed) : interposed_(std::move(interposed)) {}

  // Null when it cannot be read.  The same file is read once.
  const ElfFile* at(const std::string& path);
  bool is_interposed(const std::vector<std::string>& names) const;

 private:
  static constexpr std::size_t kLibrariesMax = 64;
  std::map<std::pair<dev_t, ino_t>, std::unique_ptr<ElfFile>> files_;
  std::set<std::string> interposed_;
};

// The executable memory of one process.
class CodeMap {
 public:
  explicit CodeMap(Libraries& libraries) : libraries_(&libraries) {}

  Origin origin_of(const Call& call);
  // Code is about to be mapped, or another program was executed.
  void forget() { is_read_ = false; }
  // Code was mapped.  The first C library is the program's: the functions of one that comes later,
  // with a library that is opened in a namespace of its own, nothing stands before.
  void code_mapped(pid_t thread) {
    if (libc_begin_ == 0) read(thread);
  }

 private:
  enum class Kind { libc, loader, other };
  struct Region {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t file_offset = 0;
    Kind kind = Kind::other;
    std::string path;
  };

  void read(pid_t thread);
  void leave_one_libc();
  const Region* find(std::uint64_t address) const;

  static constexpr std::size_t kRegionsMax = 4096;
  Libraries* libraries_;
  bool is_read_ = false;
  std::uint64_t libc_begin_ = 0;  // of the program's C library; 0: none was seen
  std::vector<Region> regions_;
};

}  // namespace pawl::cli::watch
