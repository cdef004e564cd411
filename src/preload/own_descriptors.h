// The descriptors that the core holds for itself.  The program does not know of them: it may close
// "all" descriptors, or ask for a number by dup2(), and must not hit them.
#pragma once

#include "preload/interpose.h"

#include <functional>
#include <vector>

namespace pawl::preload {

// Moves a descriptor that the core just opened out of the program's way, to a high number, and
// remembers it.  Returns the descriptor to use.
int keep_for_core(int descriptor);
// Whether it was kept here, or is in use by the core now.  Lock-free.
bool is_own(int descriptor);
void forget_own(int descriptor);
// In ascending order.
std::vector<int> own_between(unsigned first, unsigned last);

// The file of no bytes, which the core makes without open() and does not count among its own: finds
// it if it came into being while `work` ran, and keeps it.
void keep_what_appears(const std::function<void()>& work);

// Whether its file is one that the program may have locked by fcntl().  (Nobody locks a side file
// that way.)
bool may_carry_record_locks(int descriptor);
// Whether it has done so, by whichever descriptor; or another process has: the kernel names one
// lock only, and that may hide one of this process.
bool may_have_record_locks(int descriptor);

// A forked child has copies it must not use; they may be closed.
void forget_all_own();

}  // namespace pawl::preload
