#include "mapping/file_turn.h"

#include <ctime>
#include <mutex>

#include "medium/fork_safe_lock.h"
#include "medium/own_process.h"

namespace pawl {
namespace {

constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 100'000};
constexpr int kGivingWayPauses = 100;

constinit ForkSafeLock turns_lock;
// Of the memory below; they lie on the stacks of those who have them, or wait for them.
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
    : what_(what), device_(device), inode_(inode), thread_(::pthread_self()) {
  ask();
  for (int pauses = 0; !take(pauses < kGivingWayPauses); ++pauses) ::nanosleep(&kPause, nullptr);
}

FileTurn::~FileTurn() {
  const std::lock_guard lock(turns_lock);
  for (FileTurn** turn = &turns(); *turn != nullptr; turn = &(*turn)->next_) {
    if (*turn != this) continue;
    *turn = next_;
    return;
  }
}

void FileTurn::ask() {
  const std::lock_guard lock(turns_lock);
  next_ = turns();
  turns() = this;
}

bool FileTurn::take(bool may_give_way) {
  const std::lock_guard lock(turns_lock);
  bool gives_way = false;
  for (const FileTurn* turn = turns(); turn != nullptr; turn = turn->next_) {
    if (turn->is_taken_ && ::pthread_equal(turn->thread_, thread_) != 0) may_give_way = false;
    if (turn == this || turn->device_ != device_ || turn->inode_ != inode_) continue;
    const bool is_resize = turn->what_ == To::resize;
    if (turn->is_taken_ && (is_resize || what_ == To::resize)) return false;
    if (!turn->is_taken_ && is_resize && what_ != To::resize) gives_way = true;
  }
  is_taken_ = !gives_way || !may_give_way;
  return is_taken_;
}

}  // namespace pawl
