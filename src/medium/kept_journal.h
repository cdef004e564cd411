// A damaged journal is not thrown away: FILE.pawl, or a copy of it, becomes FILE.pawl.damaged, or
// .damaged.1 and so on.
#pragma once

#include <string>

#include "medium/directory.h"

namespace pawl {

// Of the journal `path` in `directory`, which is open as `side`, and nothing else that has its name
// by now.  The answer is the path that it, or its copy, has got; never that of a file that was
// there.  A copy has the owner, the mode and the access control list of the journal, as far as this
// user may give them, and less else.
Result<std::string> keep_aside(const Directory& directory, const std::string& path, int side,
                               Kept kept);

}  // namespace pawl
