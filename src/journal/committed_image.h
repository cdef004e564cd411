// The committed image: the file's content as of the last defined commit.  It is the base, overlaid
// with the pages, or the lines of pages, of records that were not yet applied.  Diff and rollback
// are taken against it and never against the base alone, which lags (law 3); a page enters the base
// only when the record that holds it is durable (law 1).
//
// Threads: every function may be called from any thread.  Only one apply() runs at a time; only one
// thread commits at a time.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "journal/format.h"
#include "journal/page_buffer.h"
#include "journal/page_pool.h"
#include "journal/space_reservation.h"
#include "medium/cache_lines.h"
#include "medium/page_runs.h"

namespace pawl {

// Committed pages that may wait for their way into the base.
inline constexpr std::size_t kOverlayPagesMax = 8192;

class CommittedImage {
 public:
  using Page = PagePool::Page;

  // `size_bytes` is the base's; all its content is durable.
  CommittedImage(MediumFile& base, std::uint64_t size_bytes, std::uint64_t durable_sequence)
      : base_(base),
        space_(base),
        base_size_(size_bytes),
        size_(size_bytes),
        durable_size_(size_bytes),
        durable_sequence_(durable_sequence),
        applied_sequence_(durable_sequence) {}

  Status learn_space() { return space_.learn(); }

  // To be called behind each apply that cut the base or punched holes into it, however it ended, by
  // the thread that applies.  Before the first commit.
  using AfterCut = std::function<void()>;
  void call_after_cut(AfterCut call) { after_cut_ = std::move(call); }

  // Whether no line of the page waits: the base has its committed bytes, but for what is still cut.
  bool only_in_base(std::uint64_t number) const;

  // The page's committed bytes, zeros past the end; not to be changed.
  Result<Page> page(std::uint64_t number);

  // Another page with the same bytes.
  Page copy(const Page& page);

  std::uint64_t size() const { return size_.load(std::memory_order_relaxed); }
  // Law 7 for content that a commit is about to log.  The space is kept for the commit in hand,
  // whatever is cut meanwhile, until end_commit().
  Status reserve_space(std::uint64_t offset, std::uint64_t length);
  // Before that, of all pages that the commit changes: their space counts as reserved no more where
  // somebody else (a snapshot, cp(1)) has come to share their blocks since.  What earlier commits
  // left waiting for its way into the base gets blocks of its own again, and so does the page at
  // each of `ends`, where the commit cuts the file or ends it.
  Status check_space_where_shared(const std::vector<PageRun>& changed,
                                  std::span<const std::uint64_t> ends);
  // The same where the base is memory: only who commits cuts it.  Takes no lock.
  Status reserve_space_in_place(std::uint64_t offset, std::uint64_t length) {
    if (space_.just_reserved(offset, length)) return {};
    return space_.reserve(offset, length, base_size_.load(std::memory_order_relaxed));
  }
  // Whether the base is known to have space for the range.
  bool has_space(std::uint64_t offset, std::uint64_t length) const {
    const std::lock_guard lock(mutex_);
    return space_.is_known(offset, length);
  }
  // Its pages are patched in, or it failed.
  void end_commit();

  // One commit's change, defined in this order: truncation, size, pages.  Calls of one commit carry
  // its sequence number; nothing of it is applied before durable(sequence).
  void truncate(std::uint64_t to, std::uint64_t sequence);
  void set_size(std::uint64_t size_bytes, std::uint64_t sequence);
  // `bytes` at `offset` within the page whose committed copy is `page`; null when nobody needed to
  // read it, and then `bytes` are whole lines, or end where the file does.
  void patch(std::uint64_t number, const Page& page, std::uint64_t offset_in_page,
             std::span<const std::byte> bytes, std::uint64_t sequence);
  // Records up to here are durable.
  void durable(std::uint64_t sequence);

  // Copies durable pages into the base; on return everything up to applied_sequence() is there
  // (in the base, not yet flushed).  A failure leaves what was not copied in the overlay.
  Status apply();
  std::uint64_t applied_sequence() const;

  // Around a fork, so that the child, which may read, finds no lock held by a thread it has not.
  void lock_for_fork() {
    mutex_.lock();
    pool_.lock_for_fork();
  }
  void unlock_after_fork() {
    pool_.unlock_after_fork();
    mutex_.unlock();
  }

  // In a child whose fork was not announced like that: it is so for ever.
  bool is_locked() const {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return !lock.owns_lock() || pool_.is_locked();
  }

  std::size_t waiting_pages() const;
  std::uint64_t pages_applied() const { return pages_applied_.load(std::memory_order_relaxed); }

  // A commit too large for the overlay goes from its durable record straight into the base; the
  // overlay must be empty.  First, the truncation and size of the record:
  Status begin_direct(std::uint64_t truncate_to, std::uint64_t size_bytes, std::uint64_t sequence);
  // then its content, in ascending order;
  Status direct(std::uint64_t offset, std::span<const std::byte> bytes);
  Status end_direct(std::uint64_t sequence);
  // In place of the three: a record of no other size, written where the base is memory.  Takes no
  // lock: there, only who commits applies.
  void applied_in_place(std::uint64_t sequence);

 private:
  struct Waiting {
    Page page;
    std::uint64_t lines = kAllLines;   // that the page holds; the base has the others
    std::uint64_t first_sequence = 0;  // of the oldest change not applied
    std::uint64_t last_sequence = 0;
    bool applying = false;  // apply() is reading the bytes: change a copy
  };
  struct SizeAt {
    std::uint64_t sequence;
    std::uint64_t size;
  };
  struct Truncation {
    bool pending = false;
    std::uint64_t to = ~std::uint64_t{0};  // the base from here on reads as zeros
    std::uint64_t first_sequence = 0;      // the oldest record whose bytes only the journal has
    std::uint64_t last_sequence = 0;
  };

  PageRuns pages_at_ends(std::span<const std::uint64_t> ends) const;
  // Of what waits, and of `asked`, which has all of it afterwards if that was worth while.
  Status find_shared(PageRuns& asked, const MediumFile::FoundShared& found) const;
  PageBuffer& writable(Waiting& waiting);
  Status apply_durable();
  Status apply_truncation(std::uint64_t size_bytes, const std::vector<std::uint64_t>& copied_pages);
  void truncation_failed();
  Status write_base(std::uint64_t offset, std::span<const std::byte> bytes);

  MediumFile& base_;
  AfterCut after_cut_;
  PagePool pool_;  // outlives the pages below
  mutable std::mutex mutex_;
  SpaceReservation space_;
  std::unordered_map<std::uint64_t, Waiting> overlay_;
  std::uint64_t waiting_first_ = 0;  // nothing in it lies before this page,
  std::uint64_t waiting_end_ = 0;    // or from this one on
  Truncation truncation_;            // defined, waiting
  Truncation applying_;              // being applied; a newer one does not join it
  PageRuns in_hand_;                 // pages that the commit in hand reserved space for
  Status punch_direct(std::uint64_t end);
  std::uint64_t direct_from_ = 0;      // where zeroing for begin_direct()'s truncation has come to
  std::uint64_t direct_zero_end_ = 0;  // and where it ends
  // Of whoever applies; a commit that reserves space looks at it meanwhile.
  std::atomic<std::uint64_t> base_size_;
  std::atomic<std::uint64_t> size_;  // of the last defined commit; changed under the lock
  std::uint64_t durable_size_;       // of the last durable one
  std::deque<SizeAt> sizes_;         // defined, not yet durable
  std::atomic<std::uint64_t> durable_sequence_;
  std::atomic<std::uint64_t> applied_sequence_;
  std::atomic<std::uint64_t> pages_applied_{0};
};

}  // namespace pawl
