// Threads that Pawl made, and those of the program: beside these a store may come at any moment.
#pragma once

namespace pawl {

// By the thread that made one, once it is there; and by that one, when it is about to end.
void count_own_thread();
void uncount_own_thread();

// Whether the program has threads beside the one that calls.  Where it cannot be found out it has
// some; and so it is while a thread of Pawl's begins or ends.  A process that shares the memory
// (clone() with CLONE_VM) is not noticed.
bool has_other_threads();

}  // namespace pawl
