// What the environment asks of Pawl.
#pragma once

#include <cstdlib>

namespace pawl {

// The variable's value; null where it is not set, and in a program that was started with raised
// privileges (set-user-ID, set-group-ID, file capabilities): its environment is that of a user who
// has fewer.
inline const char* environment_variable(const char* name) noexcept { return ::secure_getenv(name); }

}  // namespace pawl
