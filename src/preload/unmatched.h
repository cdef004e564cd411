// Programs that map files, none of which a glob matches: a glob with a typing error protects
// nothing, and that would show after the crash.
#pragma once

#include <string>

namespace pawl::preload {

// Of a shared mapping that may be written, of a file with a name.
void note_unmatched(const std::string& real_path);
void note_matched();
// One line, once, in a process that noted the first and never the second.
void say_if_nothing_matched();

}  // namespace pawl::preload
