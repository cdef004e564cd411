// A user file on a file system whose blocks are written, and flushed, by system calls; and its side
// file FILE.pawl beside it.
#pragma once

#include <memory>
#include <string>

#include "medium/named_medium.h"

namespace pawl {

// As open_named_file().
Result<std::unique_ptr<Medium>> open_block_medium(int descriptor);
// With `read_only`, for looking only: acquire_journal and every change fail.
Result<std::unique_ptr<Medium>> open_block_medium(const std::string& path, bool read_only);
std::unique_ptr<Medium> make_block_medium(NamedFile file);

}  // namespace pawl
