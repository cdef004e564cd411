// What a thread does in the scheme undo, where others log frames.
//
//   1. what a store overwrites is durable in the log before the store, but in blocks that the FASE
//      allocated: nobody has them when it is undone;
//   2. what the list of blocks says is durable before the heap's maps say so;
//   3. a FASE's end is durable after all that it stored and allocated, and names all that it
//      depends on and that may still be undone;
//   4. blocks that it freed are given to others when it is settled.
#include <sched.h>

#include "fase/thread.h"
#include "medium/law.h"

namespace pawl::fase {

void Thread::undo_lock_taken(std::uint64_t lock) {
  attach();
  if (lock != kSectionLock) file_->undo_dependences()->taken(log_index_, lock & ~kLockBits);
  if (file_->undo_is_atlas()) note_undo_lock(lock, UndoLog::LockNote::taken);
}

// As Atlas does, for what it costs: recovery knows by the ends which FASE depends on which.
void Thread::note_undo_lock(std::uint64_t lock, UndoLog::LockNote what) {
  name_undo();
  undo_entries_were_put(undo_->put_lock(lock, what, file_->undo_dependences()->clock(log_index_)));
  fence();
}

void Thread::undo_entries_were_put(std::size_t lines) {
  if (lines == UndoLog::kFull) {
    end_program("a failure-atomic section of the scheme undo stores to more than " +
                std::to_string(kUndoEntriesMax) + " places; it is undone when the file is opened");
  }
  Counts::add(counts_.frames, lines);
  count_flushed(lines);
  Counts::add(counts_.bytes_logged, lines * kLineBytes);
  has_unfenced_ = true;
}

// The FASE's number, which is that of its list of blocks, too.
void Thread::name_undo() {
  attach();
  if (list_ == 0) list_ = log_->take_number();
  if (is_armed_) return;
  undo_->begin(list_);
  is_armed_ = true;
  Counts::add(counts_.fases_armed, 1);
  // What was stored before it is durable when it stores.
  if (!lines_.empty()) flush_stored();
}

bool Thread::is_own_block_of_undo(const void* at) const {
  return blocks_.size() > 0 && is_own_block(reinterpret_cast<std::uint64_t>(at));
}

void Thread::will_store(const void* at, std::size_t count) {
  if (!is_in_fase() || count == 0 || file() == nullptr || file()->undo_dependences() == nullptr)
    return;
  // The first lock may have been taken before the file was opened.
  attach();
  // Atlas's logs have no end: of this one, half is for what must be there.
  const bool is_atlas = file_->undo_is_atlas();
  if ((!is_atlas || undo_->is_half_full()) && is_own_block_of_undo(at)) return;
  name_undo();
  const std::size_t lines =
      undo_->put(at, count, file_->undo_dependences()->clock(log_index_), is_atlas);
  if (lines == 0) return;
  undo_entries_were_put(lines);
  // Rule 1.
  if (!is_broken(Law::undo_before_store)) fence();
}

void Thread::publish_undo_blocks() {
  const auto entries = blocks_.entries().subspan(entries_published_);
  if (entries.empty()) return;
  // Rule 2.
  if (has_new_entries_ && !is_broken(Law::list_before_blocks)) fence();
  for (const std::uint64_t entry : entries) {
    if (is_freed(entry)) {
      set_free(block_of(entry));
    } else {
      set_used(entry);
    }
  }
  entries_published_ = blocks_.size();
}

void Thread::undo_lock_released(std::uint64_t lock) {
  if (lock_count_ == 0) return undo_end(lock);
  UndoDependences& dependences = *file_->undo_dependences();
  if (list_ == 0 && !dependences.has_any(log_index_)) return persist_stored();
  // Who takes the lock sees what may be undone yet.
  name_undo();
  publish_undo_blocks();
  if (lock != kSectionLock && !is_broken(Law::undo_dependents))
    dependences.will_release(fase_name(log_index_, list_), lock & ~kLockBits);
  if (file_->undo_is_atlas()) note_undo_lock(lock, UndoLog::LockNote::released);
}

void Thread::undo_end(std::uint64_t last_lock) {
  UndoDependences& dependences = *file_->undo_dependences();
  publish_undo_blocks();
  // Rule 3; and to release a lock is to show others what was stored.
  if (!is_broken(Law::undo_outputs_before_end)) persist_stored();
  if (list_ != 0) name_undo();
  const FaseName name = fase_name(log_index_, list_);
  if (list_ != 0 && (blocks_.size() > 0 || undo_->has_entries())) {
    const std::vector<FaseName> depends_on =
        dependences.has_any(log_index_) ? dependences.all_of(log_index_) : std::vector<FaseName>();
    const std::size_t end_lines = undo_->put_end(depends_on);
    Counts::add(counts_.frames, 1);
    count_flushed(end_lines);
    Counts::add(counts_.bytes_logged, end_lines * kLineBytes);
    fence();
  }
  if (list_ != 0) dependences.ended(name);
  if (dependences.try_settle(name)) return forget_undo_fase();
  is_unsettled_ = true;
  if (list_ != 0 && last_lock != kSectionLock)
    dependences.will_release(name, last_lock & ~kLockBits);
}

void Thread::forget_undo_fase() {
  for (const std::uint64_t entry : blocks_.entries()) {
    if (is_freed(entry)) file_->blocks().give_back(block_of(entry));
  }
  is_armed_ = false;
  is_unsettled_ = false;
  needs_frame_ = true;
  forget_blocks(blocks_.size());
  entries_published_ = 0;
}

// All that it depends on end without this thread, which holds no lock.
void Thread::settle() {
  if (!is_unsettled_) return;
  const FaseName name = fase_name(log_index_, list_);
  while (!file_->undo_dependences()->try_settle(name)) ::sched_yield();
  forget_undo_fase();
}

}  // namespace pawl::fase
