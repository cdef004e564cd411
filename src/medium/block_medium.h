// A user file on a file system, and its side file FILE.pawl beside it.
#pragma once

#include <memory>
#include <string>

#include "medium/medium.h"

namespace pawl {

inline constexpr const char* kJournalSuffix = ".pawl";
inline constexpr const char* kMarkAttribute = "user.pawl";

// From a descriptor open for reading and writing.  The descriptor stays the caller's; Pawl opens
// the file again for itself.  Refuses, each with its reason: what is no regular file, a file
// without a name, a read-only one, a file system that cannot serve.
Result<std::unique_ptr<Medium>> open_block_medium(int descriptor);
// From a path.  With `read_only`, for looking only: acquire_journal and every change fail.
Result<std::unique_ptr<Medium>> open_block_medium(const std::string& path, bool read_only);

}  // namespace pawl
