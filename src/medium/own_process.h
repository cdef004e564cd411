// Which process something belongs to.  A child inherits the memory of all that its parent had
// open, however it was made: by fork(), by _Fork() or clone(), which run no handlers, or by
// vfork() and posix_spawn(), where it even shares the memory.  It may read, and must change
// nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace pawl {

// A number of this process's memory: a child with a copy of the memory has another.  Not 0.
std::uint64_t number_of_memory();

// Of the threads that Pawl has in this memory; a child with a copy of it begins with none.  See
// own_threads.h.
struct ThreadCounts {
  std::atomic<std::uint32_t> begun{0};
  std::atomic<std::uint32_t> ended{0};
};
ThreadCounts* thread_counts();  // null where a child's cannot be told apart

class OwnProcess {
 public:
  // The one that calls.
  OwnProcess();
  // False in every child, and in its children.  A system call.
  bool is_this() const;
  // False in a child with a copy of the memory; a child that shares it is not noticed.  A load.
  bool has_this_memory() const { return number_of_memory() == number_; }

 private:
  std::uint64_t number_;
  pid_t process_;
};

}  // namespace pawl
