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

// While it lives fork() waits: for steps of which no child may have one without the other.  Neither
// of the functions above is called meanwhile, and no lock is taken that a guard takes.
class NoFork {
 public:
  NoFork();
  // As guard_fork(), as one of the steps.
  void guard(const void* key, ForkGuard guard) const;
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
  ~NoFork();
};

}  // namespace pawl
