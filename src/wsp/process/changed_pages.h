// Pages of a private mapping of a file that have other bytes than the file has, though the program
// may not write there: it wrote by /proc/self/mem, or another process did, and a breakpoint is such
// a write, too.  In no file is what they hold.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "medium/descriptor.h"
#include "medium/memory_areas.h"
#include "medium/status.h"
#include "wsp/process/mount.h"

namespace pawl::wsp {

class ChangedPages {
 public:
  // Asked between pieces of a large mapping.
  using MayGoOn = std::function<Status()>;
  // Of a process whose threads stand still.  `mounts` outlives it.
  ChangedPages(pid_t process, MountTable& mounts, MayGoOn may_go_on);

  // Whether there is one in the mapping of a file.  Of all mappings together so much is looked at
  // that a save stays short; none in what is larger than the rest.  A page that the program has for
  // itself, as an uprobe leaves it behind, is none where it is as in the file; so many are compared
  // that a save stays short, and none with a file that is had by its name alone, or of a server.
  Result<bool> are_in(const MemoryArea& line);

 private:
  Result<bool> scan(std::uint64_t start, std::uint64_t end);
  Result<bool> read(std::uint64_t start, std::uint64_t end);
  bool is_as_in_file(std::uint64_t page);
  void open_file();

  pid_t process_;
  MountTable& mounts_;
  Descriptor page_map_;
  MemoryArea line_;  // that is looked at
  Descriptor file_;  // and its file, once it is needed
  int left_to_compare_;
  std::uint64_t left_bytes_;
  MayGoOn may_go_on_;
  bool can_scan_ = true;  // since Linux 6.7
};

}  // namespace pawl::wsp
