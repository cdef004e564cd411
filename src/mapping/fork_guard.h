// A forked child inherits mappings that it may read but not commit: it is told so, and gives up the
// lock, so that the lock is released when its holder dies and not when the last child does (law 9).
#pragma once

#include <functional>

namespace pawl {

// What runs around each fork, in the forking thread, until forget_fork_guard().
struct ForkGuard {
  std::function<void()> before;
  std::function<void()> in_parent;
  std::function<void()> in_child;
};
// The pointer is the key.
void guard_fork(const void* key, ForkGuard guard);
void forget_fork_guard(const void* key);

}  // namespace pawl
