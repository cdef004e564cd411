// Locks of the C library that a thread of this process holds, found in memory by what they look
// like.  A heap that is synced with one keeps it locked for ever.
//
// Found are mutexes, and rwlocks that are held by a writer: both name their owner, who must be a
// living thread, and all their other fields must be as the library has them then, so that other
// data is not taken for one.  What a reader holds, and condition variables, semaphores and locks of
// other makers, name nobody and are not found.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl {

class LockOwners {
 public:
  // The threads of this process that live now.
  static Result<LockOwners> of_this_process();

  struct HeldLock {
    const char* at = nullptr;  // null: there is none
    const char* kind = "";     // "mutex"
    pid_t owner = 0;
  };
  // A lock in the block which has its owner's number in the word at `offset`, a multiple of 8.
  HeldLock lock_owned_at(const char* block, std::size_t size_bytes, std::size_t offset) const;

 private:
  explicit LockOwners(std::vector<pid_t> threads) : threads_(std::move(threads)) {}

  std::vector<pid_t> threads_;  // in order
};

}  // namespace pawl
