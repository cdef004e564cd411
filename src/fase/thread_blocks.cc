// Blocks that a FASE allocates and frees.
//
// What it allocated is marked as used before its end is logged, or before a lock is released behind
// which others may find it; what was durable in the list before then, recovery takes back.  What
// it freed, and has not published on the way, its end says: only when that is durable is it marked
// as free, and recovery does so when it finds the end.  The next armed FASE's first frame is fenced
// behind these marks, and its end takes the place of the one that names them: from then on the
// blocks can be allocated.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fase/thread.h"
#include "medium/law.h"

namespace pawl::fase {
namespace {

// A block of chunks: it begins with the first of them, and those of slabs do not.
bool is_large(std::uint64_t block) { return block % kChunkBytes == 0; }

}  // namespace

// ---------------------------------------------------------------------------------------- the list

Status Thread::add_block(std::uint64_t block) {
  attach();
  if (blocks_.is_full()) {
    return Status::failure(ENOSPC, PAWL_ERROR_TOO_MANY,
                           "a region of a failure-atomic section allocates and frees more "
                           "than " +
                               std::to_string(kBlocksMax) + " blocks");
  }
  blocks_.add(block);
  if (undo_) log_entries(blocks_.size());
  return {};
}

void Thread::log_entries(std::uint32_t count) {
  if (entries_in_log_ >= count) return;
  if (list_ == 0) list_ = log_->take_number();
  const auto entries =
      blocks_.entries().subspan(entries_in_log_, std::size_t{count} - entries_in_log_);
  count_flushed(log_->put_blocks(entries_in_log_, list_, entries));
  Counts::add(counts_.bytes_logged, entries.size() * sizeof(BlockEntry));
  entries_in_log_ = count;
  has_new_entries_ = true;
}

void Thread::persist_new_entries() {
  if (!has_new_entries_ || is_broken(Law::list_before_blocks)) return;
  flush_stored();
  fence();
}

bool Thread::is_own_block(std::uint64_t address) const {
  for (const std::uint64_t entry : blocks_.entries()) {
    if (is_freed(entry)) continue;
    const auto size = file()->blocks().usable_size(entry);
    if (size.ok() && address - entry < size.value()) return true;
  }
  return false;
}

// ---------------------------------------------------------------------------------------
// publishing

void Thread::set_used(std::uint64_t block) {
  file()->blocks().set_used(block);
  count_flushed(1);
  has_unfenced_ = true;
}

void Thread::set_free(std::uint64_t block) {
  file()->blocks().set_free(block);
  count_flushed(1);
  has_unfenced_ = true;
}

void Thread::publish_blocks(std::uint32_t count) {
  if (count > 0) {
    // What recovery would take back must be known to it before it can be found.
    if (is_armed_) {
      log_entries(count);
      persist_new_entries();
    }
    for (const std::uint64_t entry : blocks_.entries().first(count)) {
      if (!is_freed(entry)) {
        set_used(entry);
        continue;
      }
      set_free(block_of(entry));
      published_frees_.push_back(block_of(entry));
    }
  }
  forget_blocks(count);
}

void Thread::publish_allocated() {
  for (const std::uint64_t entry : blocks_.entries()) {
    if (!is_freed(entry)) set_used(entry);
  }
  blocks_.keep_freed();
}

void Thread::forget_blocks(std::uint32_t count) {
  blocks_.drop(count);
  entries_in_log_ = 0;
  list_ = 0;
}

void Thread::give_back_published() {
  for (const std::uint64_t block : published_frees_) file()->blocks().give_back(block);
  published_frees_.clear();
}

// ------------------------------------------------------------------------------------------ the
// end

bool Thread::can_free_with_end() const {
  std::uint32_t count = 0;
  for (const std::uint64_t entry : blocks_.entries()) {
    if (!is_freed(entry)) continue;
    // They wait for the thread's next FASE: none that is large shall.
    if (is_large(block_of(entry)) || ++count > kFreedByEndMax) return false;
  }
  return true;
}

void Thread::publish_with_end() {
  if (blocks_.size() == 0) return;
  if (!can_free_with_end()) return publish_blocks(blocks_.size());
  const auto entries = blocks_.entries();
  const auto unknown = entries.subspan(entries_in_log_);
  if (!std::ranges::all_of(unknown, is_freed)) log_entries(blocks_.size());
  persist_new_entries();
  for (const std::uint64_t entry : entries) {
    if (!is_freed(entry)) {
      set_used(entry);
      continue;
    }
    ending_[ending_count_++] = block_of(entry);
  }
  forget_blocks(blocks_.size());
}

// The end is durable, and so are the marks of what the one before it freed.  The last lock was
// released meanwhile: each step is a locked instruction, and would keep others waiting.
void Thread::complete_end() {
  if (!std::exchange(has_ended_in_log_, false)) return;
  Blocks& blocks = file()->blocks();
  for (const std::uint64_t block : freed_by_end()) blocks.give_back(block);
  freed_by_end_ = ending_;
  freed_by_end_count_ = std::exchange(ending_count_, 0);
  for (const std::uint64_t block : freed_by_end()) blocks.mark_free(block);
  has_unflushed_marks_ = freed_by_end_count_ > 0;
}

void Thread::flush_freed_by_end() {
  if (!has_unflushed_marks_) return;
  for (const std::uint64_t block : freed_by_end()) file()->blocks().flush_mark(block);
  count_flushed(freed_by_end_count_);
  has_unflushed_marks_ = false;
  has_unfenced_ = true;
}

// Nobody will write a frame here for some time: the end frees nothing any more.
void Thread::forget_end() {
  if (freed_by_end_count_ == 0) return;
  flush_freed_by_end();
  if (has_unfenced_) fence();
  end_in_log();
  has_ended_in_log_ = true;
  complete_end();
}

// ------------------------------------------------------------------------------ allocating,
// freeing

Result<void*> Thread::allocate(std::uint64_t size_bytes, bool zeroed) {
  PAWL_TRY(check_not_in_handler());
  if (is_rehearsing()) return allocate_again(size_bytes, zeroed);
  auto reserved = file()->blocks().reserve(size_bytes);
  if (!reserved.ok()) return reserved.status();
  const std::uint64_t block = reserved.value();
  void* const at = reinterpret_cast<void*>(block);  // NOLINT(performance-no-int-to-ptr)
  if (is_in_fase()) {
    if (Status added = add_block(block); !added.ok()) {
      file()->blocks().give_back(block);
      return added;
    }
    if (rehearsal_ != nullptr) rehearsal_->allocated(block, size_bytes);
  }
  if (zeroed && size_bytes > 0) {
    std::memset(at, 0, size_bytes);
    stored_unchecked(at, size_bytes);
  }
  if (!is_in_fase()) {
    set_used(block);
    persist_stored();
  }
  return at;
}

Result<void*> Thread::allocate_again(std::uint64_t size_bytes, bool zeroed) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the file
  void* const at = reinterpret_cast<void*>(rehearsal_->allocate_again(size_bytes));
  if (zeroed && size_bytes > 0) {
    std::memset(at, 0, size_bytes);
    stored_unchecked(at, size_bytes);
  }
  return at;
}

Status Thread::free(void* block) {
  PAWL_TRY(check_not_in_handler());
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (is_rehearsing()) {
    rehearsal_->free_again(address);
    return {};
  }
  Blocks& blocks = file()->blocks();
  PAWL_TRY(blocks.begin_free(address));
  if (is_in_fase()) {
    Status added = add_block(address | kFreedBit);
    if (!added.ok()) {
      blocks.cancel_free(address);
    } else if (rehearsal_ != nullptr) {
      rehearsal_->freed(address);
    }
    return added;
  }
  set_free(address);
  persist_stored();
  blocks.give_back(address);
  return {};
}

}  // namespace pawl::fase
