// Programs that the program starts and that cannot take this library along.
#pragma once

#include "preload/interpose.h"

namespace pawl::preload {

// What is said once is said once by all processes that are forked from here on.
void prepare_to_name_programs();

// Says that a program which is about to be started will not be protected, and why.  Each program
// once; async-signal-safe; leaves errno alone.  `flags` are those of execveat(2).
void name_if_unprotected(int directory, const char* path, int flags = 0) noexcept;
void name_if_unprotected(int descriptor) noexcept;
// Searches PATH, as execvp(3) does.
void name_if_unprotected_in_path(const char* name) noexcept;

}  // namespace pawl::preload
