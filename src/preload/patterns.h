// Which files the person asked to be atomic: PAWL_ATOMIC, globs joined by ':'.
#pragma once

#include "preload/interpose.h"

#include <string>

namespace pawl::preload {

// Reads PAWL_ATOMIC.  Call it once, before the program changes its directory.
void read_patterns();

// A glob with '/' is matched against the absolute real path (a relative one counts from the
// directory the program started in), one without against the file's name.  '*' does not match '/'.
// Pawl's own side files never match.
bool matches_a_pattern(const std::string& real_path);
bool has_patterns();
bool is_side_file(const std::string& path);

}  // namespace pawl::preload
