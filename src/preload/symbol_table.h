// A function of a loaded library, found without dlsym() and dlvsym(): the preload library stands
// before both, and by their names its own are found.
#pragma once

#include "preload/interpose.h"

#include <link.h>

namespace pawl::preload {

// This library, among the loaded ones.  Null where the loader does not say.
const link_map* own_library();

// The function of that name in the library's GNU hash table, in any of its versions; or null.
void* function_in(const link_map& library, const char* name);

}  // namespace pawl::preload
