#include "mapping/file_turn.h"

#include <ctime>
#include <mutex>

#include "medium/fork_safe_lock.h"
#include "medium/own_process.h"

namespace pawl {
namespace {

constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 100'000};

constinit ForkSafeLock turns_lock;
// Of the memory below; they lie on the stacks of those who have them.
constinit FileTurn* first_turn = nullptr;
constinit std::uint64_t memory_of_turns = 0;

// With the lock.  In a child, also of _Fork(), the turns are those of threads that it has not.
FileTurn*& turns() {
  if (const std::uint64_t now = number_of_memory(); memory_of_turns != now) {
    first_turn = nullptr;
    memory_of_turns = now;
  }
  return first_turn;
}

}  // namespace

FileTurn::FileTurn(To what, std::uint64_t device, std::uint64_t inode)
    : what_(what), device_(device), inode_(inode) {
  while (!take()) ::nanosleep(&kPause, nullptr);
}

FileTurn::~FileTurn() {
  const std::lock_guard lock(turns_lock);
  for (FileTurn** turn = &turns(); *turn != nullptr; turn = &(*turn)->next_) {
    if (*turn != this) continue;
    *turn = next_;
    return;
  }
}

bool FileTurn::must_wait_for(const FileTurn& other) const {
  return other.device_ == device_ && other.inode_ == inode_ &&
         (what_ == To::resize || other.what_ == To::resize);
}

bool FileTurn::take() {
  const std::lock_guard lock(turns_lock);
  for (const FileTurn* turn = turns(); turn != nullptr; turn = turn->next_) {
    if (must_wait_for(*turn)) return false;
  }
  next_ = turns();
  turns() = this;
  return true;
}

}  // namespace pawl
