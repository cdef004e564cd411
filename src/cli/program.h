// Finds a program as a shell would, and says whether the preload library can come along.
#pragma once

#include <string>

#include "medium/status.h"

namespace pawl::cli {

// The path that would be executed.  ENOENT: there is none; EACCES: there is, and it cannot run.
Result<std::string> find_program(const std::string& name);

// Fails with the reason when the dynamic loader would not take LD_PRELOAD for this program: a
// statically linked one, a setuid one, one of another architecture.  Follows '#!' lines.
Status check_preloadable(const std::string& path);

}  // namespace pawl::cli
