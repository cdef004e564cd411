// mmap(2)'s arguments, checked, and the mapping they ask for among the open ones: alone, or in a
// group.
#pragma once

#include <sys/types.h>

#include <memory>

#include "mapping/group.h"
#include "pawl/pawl.h"

namespace pawl {

struct MapCall {
  void* address;
  std::size_t length;
  int protection;
  int flags;
  int descriptor;
  off_t offset;
  const void* caller;  // the program's code that asked
};

// A program that maps atomically, or opens a heap, gets the wrappers by which the fault tracker
// sees what the kernel stores, and those of the calls on its memory, from an archive too.  The
// preload library has its own for read and its kin, and for the latter.
void link_the_wrappers();

// Of a program's options, before anything is mapped or opened with them: refuses the tracker that
// would see none of its stores.
Status check_tracker(const Options& options);

// `given` may be null: then the environment's options.
Status map_atomic(const MapCall& call, const pawl_options* given, void** result);
Status map_atomic_in(const std::shared_ptr<Group>& group, const MapCall& call, void** result);

}  // namespace pawl
