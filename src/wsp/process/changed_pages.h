// Pages of a private mapping of a file that have other bytes than the file has, though the program
// may not write there: it wrote by /proc/self/mem, or another process did, and a breakpoint is such
// a write, too.  In no file is what they hold.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl::wsp {

class ChangedPages {
 public:
  // Asked between pieces of a large mapping.
  using MayGoOn = std::function<Status()>;
  ChangedPages(pid_t process, MayGoOn may_go_on);

  // Whether there is one from `start` to `end`, within one mapping of a file.  Of all mappings
  // together so much is looked at that a save stays short; none in what is larger than the rest.
  Result<bool> are_in(std::uint64_t start, std::uint64_t end);

 private:
  Result<bool> scan(std::uint64_t start, std::uint64_t end);
  Result<bool> read(std::uint64_t start, std::uint64_t end) const;

  Descriptor page_map_;
  std::uint64_t left_bytes_;
  MayGoOn may_go_on_;
  bool can_scan_ = true;  // since Linux 6.7
};

}  // namespace pawl::wsp
