// The locks that a thread holds: its FASE begins with the first and ends with the last.
//
// A lock that is released while others are held, and that the last frame names, needs a frame
// without it (rule 5).  That is put off, and the lock kept, until the FASE ends or cuts, which
// needs a frame anyway.  Only before the thread takes another lock, or control leaves the function
// that logged the release or enters another, is the frame logged for itself: where the FASE goes on
// behind the last release, with the list of blocks as it was there, for nothing was stored since
// (rule 1), and what was allocated or freed is done again.  To wait for a lock with one kept would
// be to wait in an order that the program does not know.
#include "fase/recovered_fase.h"
#include "fase/thread.h"
#include "medium/law.h"

namespace pawl::fase {

std::uint64_t Thread::held_lock(std::uint64_t address) const {
  for (std::uint32_t i = lock_count_; i > 0; --i) {
    if ((locks_[i - 1] & ~kLockBits) == address) return locks_[i - 1];
  }
  return 0;
}

void Thread::refuse_lock() const {
  end_program("a thread takes more than " + std::to_string(kLocksMax) + " locks at a time");
}

void Thread::add_lock(std::uint64_t lock) {
  PAWL_ASSERT(lock_count_ < kLocksMax);
  if (lock_count_ == 0) {
    if (is_of_handlers_) {
      end_program(
          "a signal handler takes a lock, or begins a failure-atomic section, while it interrupts "
          "one; block the signal there, or do it behind the section");
    }
    depth_ = 0;
    last_frame_depth_ = 0;
    Counts::add(counts_.fases, 1);
  }
  locks_[lock_count_++] = lock;
  if (file() != nullptr && file()->undo_dependences() != nullptr) return undo_lock_taken(lock);
  // Until a frame names it, another thread's recovery may have the lock before this one's.
  needs_frame_ = true;
}

bool Thread::remove_lock(std::uint64_t lock, const Site& site, ReleaseLock really) {
  reached(EventKind::unlock, lock, &site);
  std::uint32_t at = lock_count_;
  while (at > 0 && locks_[at - 1] != lock) --at;
  PAWL_ASSERT(at > 0);
  std::copy(locks_.begin() + at, locks_.begin() + lock_count_, locks_.begin() + at - 1);
  --lock_count_;
  if (undo_) {
    undo_lock_released(lock);
  } else if (lock_count_ == 0) {
    end_fase();
  } else if (!is_armed_) {
    if (blocks_.size() > 0) publish_allocated();
    persist_stored();
  } else if (at > locks_in_frame_) {
    // Nothing was stored under it (rule 1), and what was read comes with the next frame, or is read
    // again.
    persist_stored();
  } else {
    --locks_in_frame_;
    return remove_named_lock(lock, site, really);
  }
  return true;
}

bool Thread::remove_named_lock(std::uint64_t lock, const Site& site, ReleaseLock really) {
  if (site.function == nullptr) {
    end_program(
        "a lock was released while others are held, where the compiler saw none; the function "
        "that took them must be compiled with the same options");
  }
  if (can_put_off(lock)) {
    put_off_.add(lock, really, site.function, site.region, site.bytes(), blocks_.size());
    // A store would have to come before the release.
    needs_frame_ = true;
    return false;
  }
  // Rule 5.
  publish_blocks(blocks_.size());
  log_frame(site);
  release_what_was_put_off();
  give_back_published();
  return true;
}

// Not those that are held several times: which release is the last one must be known.  JUSTDO logs
// each release for itself.
bool Thread::can_put_off(std::uint64_t lock) const {
  return file_->scheme() == Scheme::ido && ((lock & kRecursiveBit) == 0 || lock == kSectionLock);
}

void Thread::log_what_was_put_off() {
  if (put_off_.empty()) return;
  publish_blocks(put_off_.entries());
  persist_stored();
  write_frame({put_off_.function(), put_off_.region(), put_off_.live_ins()}, 0);
  // The region began before this frame.
  if (rehearsal_ != nullptr) rehearsal_->forget();
  release_what_was_put_off();
  give_back_published();
}

void Thread::release_what_was_put_off() {
  put_off_.take([this](std::uint64_t lock, ReleaseLock really) {
    if (is_broken(Law::frame_before_unlock)) return;  // it was released at once
    release_really(lock, really);
  });
}

int Thread::release_really(std::uint64_t lock, ReleaseLock really) {
  if (recovered_ == nullptr) return really(*this, lock);
  recovered_->unlock(lock);
  return 0;
}

void Thread::log_lock_of_justdo(LockStep step, std::uint64_t lock) {
  if (recovered_ != nullptr || is_of_handlers_) return;
  attach();
  JustdoLocks(file_->scheme_log(log_index_), file_->memory()).put(step, lock);
  count_flushed(1);
  Counts::add(counts_.bytes_logged, kWordBytes);
  fence();
}

void Thread::settle_what_was_left() {
  if (undo_) settle();
  complete_end();
  if (is_refused_) end_program("ending the program, for what was said above");
}

}  // namespace pawl::fase
