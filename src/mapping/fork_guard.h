// A forked child inherits mappings that it may read but not commit: it is told so, and gives up the
// lock, so that the lock is released when its holder dies and not when the last child does (law 9).
#pragma once

#include <functional>

namespace pawl {

// `in_child` runs in each forked child, until forget().  The pointer is the key.
void guard_fork(const void* key, std::function<void()> in_child);
void forget_fork_guard(const void* key);

}  // namespace pawl
