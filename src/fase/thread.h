// What a thread knows of its FASE, and how it moves it on: frames, what was stored, blocks.
//
// docs/fase-design.md tells the rules; their numbers are named in thread.cc where they are kept.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fase/block_list.h"
#include "fase/file.h"
#include "fase/justdo_locks.h"
#include "fase/log.h"
#include "fase/put_off.h"
#include "fase/rehearsal.h"
#include "fase/stored_lines.h"
#include "fase/undo_log.h"
#include "medium/own_process.h"

namespace pawl::fase {

class RecoveredFase;

class Thread;
// The calling thread's, once it has one.  Next to its registers: the run-time asks for it at each
// of its calls.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local Thread* the_thread;
// What the_thread was when the kernel called a signal handler, while that runs.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local Thread* interrupted_thread;

// The file that is open; null: none.
inline std::atomic<File*> the_open_file{nullptr};
inline File* open_file() { return the_open_file.load(std::memory_order_acquire); }
// The memory of the process that opened it, as number_of_memory() has it; 0: none is open.
inline std::atomic<std::uint64_t> memory_of_opener{0};
inline void set_open_file(File* file) {
  memory_of_opener.store(file != nullptr ? number_of_memory() : 0);
  the_open_file.store(file, std::memory_order_release);
}

// A region of a function, and what it takes.
struct Site {
  const pawl_fase_function* function = nullptr;
  std::uint32_t region = 0;
  const void* live_ins = nullptr;

  const pawl_fase_region& described() const;
  std::span<const std::byte> bytes() const;
};

struct Counts {
  std::atomic<std::uint64_t> fases{0};
  std::atomic<std::uint64_t> fases_armed{0};
  std::atomic<std::uint64_t> frames{0};
  std::atomic<std::uint64_t> fences{0};
  std::atomic<std::uint64_t> lines_flushed{0};
  std::atomic<std::uint64_t> bytes_logged{0};

  // Only the thread itself counts.
  static void add(std::atomic<std::uint64_t>& to, std::uint64_t count) {
    to.store(to.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }
  void add(const Counts& other);
  void clear();
};

class Thread {
 public:
  // The calling thread's.
  static Thread& current() { return the_thread != nullptr ? *the_thread : make_current(); }
  // The same while it is in a FASE; else null.  Outside of FASEs nothing is made, locked or
  // allocated for a question: a signal handler may ask.
  static Thread* in_fase() {
    return the_thread != nullptr && the_thread->is_in_fase() ? the_thread : nullptr;
  }
  static File* current_file() { return the_thread != nullptr ? the_thread->file() : open_file(); }
  // A thread of the recovery has another one for a while.
  static void set_current(Thread* thread) { the_thread = thread; }

  // --- signal handlers, in signal_handlers.cc ---
  // Between these two the calling thread has the Thread of handlers: in no FASE, and nothing of it
  // changes, for all handlers share it.  Null: it has that already.  Else the second takes what the
  // first has returned.
  static Thread* enter_handler();
  static void leave_handler(Thread* entered);
  // For who takes a lock or allocates.  In a handler that interrupts no FASE the thread's own,
  // until return_to_handler() is called outside of a FASE; else this one.
  Thread& lent_to_handler() { return is_of_handlers_ ? lend() : *this; }
  // The same for who makes durable what the thread has stored: nothing is allocated.
  Thread& lent_if_made() { return interrupted_thread != nullptr ? lent_to_handler() : *this; }
  void return_to_handler() {
    if (is_lent_to_handler_) [[unlikely]]
      end_loan();
  }

  constexpr Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // --- the file ---
  // Null: none is open.
  File* file() const { return recovered_ != nullptr ? file_ : open_file(); }
  // Of recovery: the FASE that this thread finishes; else null.
  RecoveredFase* recovered() const { return recovered_; }
  // Gives its log back.  Not in a FASE.
  void detach();
  // In a forked child: of the calling thread.
  static void forget_file_of_current();

  // --- the FASE ---
  bool is_in_fase() const { return lock_count_ > 0; }
  bool is_armed() const { return is_armed_; }

  std::span<const std::uint64_t> locks() const { return {locks_.data(), lock_count_}; }
  // The lock at the address, as it was taken last; 0: it is not held.
  std::uint64_t held_lock(std::uint64_t address) const;
  // Before one is waited for.  Ends the program when there is no room for one more.
  void will_lock(std::uint64_t lock) {
    if (!put_off_.empty()) log_what_was_put_off();
    reached(EventKind::lock, lock, nullptr);
    if (lock_count_ == kLocksMax) refuse_lock();
  }
  // The lock was taken: the FASE begins if it is the first.
  void add_lock(std::uint64_t lock);
  // The program releases it.  True: the caller is to do so, for no durable frame names the lock any
  // more, or it was the last one, and the FASE has ended; in recovery it does not return then.
  // False: it is put off, and the thread will.
  bool remove_lock(std::uint64_t lock, const Site& site, ReleaseLock really);
  // In recovery it is the recovery's lock.
  int release_really(std::uint64_t lock, ReleaseLock really);
  // Whether the program has released the lock at the address, and the thread has not.
  bool has_put_off(std::uint64_t address) const { return put_off_.has(address); }
  void log_what_was_put_off();
  // Of JUSTDO: durable on return.
  void log_lock(LockStep step, std::uint64_t lock) {
    const File* const of = file();
    if (of != nullptr && of->scheme() == Scheme::justdo) [[unlikely]]
      log_lock_of_justdo(step, lock);
  }
  // After that: refused FASEs end the program.
  void fase_was_left() {
    if (!is_in_fase()) settle_what_was_left();
  }
  // Of undo: whether a FASE has ended that may still be undone, with others.
  bool is_unsettled() const { return is_unsettled_; }

  // These in a FASE only.
  void cut(const Site& site);
  void call(const Site& site);
  void call_returned();
  std::uint32_t depth() const { return depth_; }

  // What cannot be executed again was met, in a FASE.
  void refuse(const pawl_fase_function* function, std::uint32_t line, const char* what,
              bool even_unarmed);

  // --- memory ---
  void stored(const void* at, std::size_t count);
  // The same, of what may be stored before a frame: locks, and blocks that nobody else knows.
  void stored_unchecked(const void* at, std::size_t count);
  // Durable on return: all that the thread stored.
  void persist_stored() {
    if (is_anything_unfenced()) persist_unfenced();
  }
  void persist(const void* at, std::size_t count);

  // Of undo: the bytes are about to be stored to, in a FASE or before one.  On return what stands
  // there is durable in the log, if it has to be.
  void will_store(const void* at, std::size_t count);
  // --- rehearsals ---
  // Null unless regions are executed twice; see rehearsal.h.
  Rehearsal* rehearsal() const { return rehearsal_.get(); }
  bool is_rehearsing() const { return rehearsal_ != nullptr && rehearsal_->is_on(); }
  // Before what ends a region happens.
  void reached(EventKind kind, std::uint64_t object, const Site* site) {
    if (rehearsal_ != nullptr) [[unlikely]]
      rehearsal_->reached(kind, object, site);
  }

  // --- blocks ---
  // Null: errno and the last error are set, as pawl_fase_malloc() says.
  Result<void*> allocate(std::uint64_t size_bytes, bool zeroed);
  Status free(void* block);

  const Counts& counts() const { return counts_; }
  Counts& counts() { return counts_; }

  // --- recovery ---
  // Takes over the FASE that a log holds.
  void adopt(File& file, std::uint32_t log, const FoundLog& found, RecoveredFase& fase);
  // The innermost function returned, in recovery: where its caller goes on.
  Site return_in_recovery();

 private:
  // A function that has called another one.
  struct Level {
    const pawl_fase_function* function = nullptr;
    std::uint32_t region = 0;
    FrameName name;  // once it is in the log
    std::uint32_t live_in_bytes = 0;
    alignas(kWordBytes) std::array<std::byte, PAWL_FASE_LIVE_IN_BYTES_MAX> live_ins{};
  };

  // Of undo, in thread_undo.cc.
  void undo_lock_taken(std::uint64_t lock);
  void undo_lock_released(std::uint64_t lock);
  void undo_end(std::uint64_t last_lock);
  void name_undo();
  void note_undo_lock(std::uint64_t lock, UndoLog::LockNote what);
  void undo_entries_were_put(std::size_t lines);
  void publish_undo_blocks();
  bool is_own_block_of_undo(const void* at) const;
  void settle();
  void forget_undo_fase();

  struct OfHandlers {};
  constexpr explicit Thread(OfHandlers) : is_of_handlers_(true) {}
  union Kept;
  static Kept kept_of_handlers_;
  static Thread& of_handlers();
  Thread& lend();
  void end_loan();
  bool is_in_or_behind_fase() const;
  Status check_not_in_handler() const;

  static Thread& make_current();
  [[noreturn]] void refuse_lock() const;
  void log_lock_of_justdo(LockStep step, std::uint64_t lock);
  void settle_what_was_left();
  bool remove_named_lock(std::uint64_t lock, const Site& site, ReleaseLock really);
  bool can_put_off(std::uint64_t lock) const;
  void release_what_was_put_off();

  void forget_file();
  void end_fase();
  void end_in_log();
  // A frame at the site, and before it all that was stored.  Durable on return.
  void log_frame(const Site& site);
  void attach();
  // Which has so many entries of the list.
  void write_frame(const Site& site, std::uint32_t entries);
  FrameName put(const Frame& frame);
  void flush(std::uint64_t at, std::size_t count);
  void count_flushed(std::uint64_t lines);
  void flush_stored();
  void persist_unfenced();
  void persist_in_handler(const void* at, std::size_t count) const;
  void fence();
  void forget_unfenced() {
    has_unfenced_ = false;
    has_new_entries_ = false;
  }
  bool is_anything_unfenced() const { return has_unfenced_ || !lines_.empty(); }

  // Of blocks, in thread_blocks.cc.
  Status add_block(std::uint64_t block);
  bool is_own_block(std::uint64_t address) const;
  // So many entries are in the log on return, flushed.
  void log_entries(std::uint32_t count);
  void persist_new_entries();
  // Flushed.
  void set_used(std::uint64_t block);
  void set_free(std::uint64_t block);
  // Marks so many of the list as used and free; those that follow are another list.
  void publish_blocks(std::uint32_t count);
  // Of a FASE that is not armed: what it freed waits for the end, or for the frame.
  void publish_allocated();
  void forget_blocks(std::uint32_t count);
  // Once a frame is durable that does not know them, or the end is: what was freed can be
  // allocated.
  void give_back_published();
  // The same, at the end of an armed FASE: which says itself what it frees.
  bool can_free_with_end() const;
  void publish_with_end();
  void complete_end();
  std::span<const std::uint64_t> freed_by_end() const {
    return {freed_by_end_.data(), freed_by_end_count_};
  }
  void flush_freed_by_end();
  void forget_end();
  Result<void*> allocate_again(std::uint64_t size_bytes, bool zeroed);

  void tell_refusal(const pawl_fase_function* function, std::uint32_t line, const char* what);
  [[noreturn]] void end_program(const std::string& why) const;

  const bool is_of_handlers_ = false;
  bool is_lent_to_handler_ = false;
  File* file_ = nullptr;  // that has the log
  std::uint32_t log_index_ = File::kNoLog;
  std::optional<Log> log_;
  std::optional<UndoLog> undo_;  // of that scheme
  RecoveredFase* recovered_ = nullptr;

  std::uint32_t lock_count_ = 0;
  std::uint32_t locks_in_frame_ = 0;  // the first ones, once the FASE is armed
  std::uint32_t depth_ = 0;
  bool is_armed_ = false;
  bool needs_frame_ = true;           // before the next store
  bool has_unfenced_ = false;         // flushed, and not fenced
  bool has_new_entries_ = false;      // of the list, that were not fenced
  bool has_ended_in_log_ = false;     // and what that end frees is not marked yet
  bool has_unflushed_marks_ = false;  // of what the last end frees
  bool is_refused_ = false;
  bool is_unsettled_ = false;            // of undo: it has ended, and is not settled
  std::uint32_t entries_published_ = 0;  // of undo: the first ones
  std::unique_ptr<Rehearsal> rehearsal_;
  std::uint32_t last_frame_depth_ = 0;
  std::uint64_t list_ = 0;            // of blocks_
  std::uint32_t entries_in_log_ = 0;  // the first ones of them
  BlockList blocks_;
  std::vector<std::uint64_t> published_frees_;
  // Blocks that are freed by the end that is being logged, and by the last one.
  std::uint32_t ending_count_ = 0;
  std::uint32_t freed_by_end_count_ = 0;
  std::array<std::uint64_t, kFreedByEndMax> ending_{};
  std::array<std::uint64_t, kFreedByEndMax> freed_by_end_{};
  std::array<std::uint64_t, kLocksMax> locks_{};
  PutOffReleases put_off_;
  StoredLines lines_;
  Counts counts_;
  std::array<Level, kDepthMax> levels_{};
};

// All threads' counts, of those that ended, too; since the file was opened.
void sum_counts(Counts& sum);
// EBUSY: a thread is in a FASE.  Else all threads give their logs back.
Status detach_all_threads();
void begin_counting();

// In a forked child of a process that had one open.
bool is_forked_child();
void become_forked_child();

}  // namespace pawl::fase
