// What a process was started with, as far as a preloaded library needs it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace pawl::cli::watch {

// What the watched program is given, to see which of its processes get it: 'pawl run' sets such
// variables, too.  LD_PRELOAD names the dynamic loader itself, which is in every process already:
// nothing is loaded, and nothing is said where a root directory lacks it.  `others` is LD_PRELOAD
// as it was.
std::vector<std::string> trial_variables(const char* others);

struct StartEnvironment {
  bool has_variables = true;  // also where they cannot be read
  bool has_preload = true;
};
StartEnvironment start_environment_of(pid_t process);

struct RootDirectory {
  bool has_library = true;
  bool has_other_libraries = false;  // than those that the command runs with
};
// `library` is the path of the preload library.
RootDirectory root_directory_of(pid_t process, const std::string& library);
// Whether the process sees a /proc now; true where it has ended.
bool has_proc(pid_t process);

}  // namespace pawl::cli::watch
