// A file of failure-atomic sections as it lies there, looked at without changing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fase/format.h"
#include "fase/log.h"
#include "medium/status.h"

namespace pawl::fase {

struct ClosedFile {
  Header header;
  std::vector<std::byte> fingerprint;  // of the program that opened it last; empty: not known
  bool is_in_use = false;              // a process has it open
  // One for each FASE that is not finished: its functions, the outermost first.
  std::vector<std::vector<FoundFrame>> unfinished;
  // FASEs of the scheme undo that will be taken back.
  std::uint64_t to_undo = 0;

  bool is_clean() const { return unfinished.empty() && to_undo == 0; }
};

// As pawl_fase_open() for a file that is none, newer or damaged.
Result<ClosedFile> look_at_file(const std::string& path);

// EBUSY: a crash left sections in it that the next pawl_fase_open() finishes, so that it is no
// state that its program knows.
Status check_is_finished(const std::string& path);

}  // namespace pawl::fase
