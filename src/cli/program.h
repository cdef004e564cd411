// Finds a program as a shell would, and says whether the preload library can come along.
#pragma once

#include <string>

#include "cli/exit_codes.h"
#include "medium/program_file.h"
#include "medium/status.h"

namespace pawl::cli {

// The path that would be executed.  ENOENT: there is none; EACCES: there is, and it cannot run.
Result<std::string> find_program(const std::string& name);
// Of a program that was not found so, or could not be run.
ExitCode exit_code_without_program(const Status& failure);

struct Preloadability {
  Obstacle obstacle = Obstacle::none;
  Status status;  // the reason, when there is an obstacle
};

// Follows '#!' lines.  The texts call the program `shown`, or `path` where that is empty.
Preloadability preloadability_of(const std::string& path, const std::string& shown = {});
// The shell that reads a script, by its name, also behind env(1); empty for anything else.
std::string shell_of(const std::string& path);
// Its status alone.
Status check_preloadable(const std::string& path);

// libpawl-preload.so, beside the command where a build tree or an installation has it.
Result<std::string> find_preload_library();

}  // namespace pawl::cli
