// Files that the parent has mapped, in a child that shares its memory or has a copy of it that no
// handler of fork() prepared (vfork(), _Fork(), clone()).  What would change them is refused, as in
// a child of fork(): the parent would not see it.
//
// Takes neither memory nor a lock: another thread of the parent may hold it, and the child may be
// killed at any moment.
#pragma once

#include "preload/interpose.h"

namespace pawl::preload {

// -1, with errno EPERM and a line that says so, where the name is that of such a file; else 0.  The
// flags are those of fstatat().
int refuse_parents_file(const char* call, int directory, const char* path, int flags);
int refuse_parents_file(const char* call, int descriptor);

}  // namespace pawl::preload
