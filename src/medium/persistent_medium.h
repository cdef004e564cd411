// A user file in persistent memory, and its side file beside it, both mapped and written in place.
// docs/persistent-memory.md says what is promised where.
#pragma once

#include <memory>
#include <string>

#include "medium/named_medium.h"

namespace pawl {

// As open_named_file().  On a file system with direct access (DAX; MAP_SYNC) commits survive a loss
// of power.  On tmpfs, which has no storage, they survive the death of the process.  EOPNOTSUPP
// elsewhere, with what to do.
Result<std::unique_ptr<Medium>> open_persistent_medium(int descriptor);
Result<std::unique_ptr<Medium>> open_persistent_medium(const std::string& path);
// `file` stays the caller's on EOPNOTSUPP.
Result<std::unique_ptr<Medium>> make_persistent_medium(NamedFile& file);

// Whether the file is in memory that keeps its bytes when the power goes: with MAP_SYNC, on a
// processor whose instructions Pawl knows.
bool is_in_persistent_memory(const NamedFile& file);

}  // namespace pawl
