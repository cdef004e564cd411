// The descriptors that the core holds for itself.  The program does not know of them: it may close
// "all" descriptors, or ask for a number by dup2(), and must not hit them.
#pragma once

#include "preload/interpose.h"

#include <cerrno>
#include <functional>
#include <vector>

#include "medium/status.h"

namespace pawl::preload {

// Moves a descriptor that the core just opened out of the program's way, to a high number, and
// remembers it.  Returns the descriptor to use.
int keep_for_core(int descriptor);
// What open_it() opens for the core, kept.  At the limit of descriptors it takes from the reserve.
template <class Open>
int open_for_core(const Open& open_it);

// Descriptors for files that are to be opened again, whatever the program's other threads open
// meanwhile.  Of the thread that is Suspending (lifecycle.h), and used by that alone.
namespace reserve {
// EMFILE, ENFILE: there are not enough for one.  For the others as many as there are.
Status keep_for(std::size_t files);
void empty();
// Closes some, for calls that do not come by open_for_core(); false: there is none.
bool give_back(std::size_t count);
// Closes one for the next call; where others took them all, waits a moment for one that they close.
// False: not any more.
bool make_room();
}  // namespace reserve

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

template <class Open>
int open_for_core(const Open& open_it) {
  int descriptor = open_it();
  while (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && reserve::make_room())
    descriptor = open_it();
  return keep_for_core(descriptor);
}

}  // namespace pawl::preload
