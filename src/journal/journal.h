// The journal in use: a ring of records that are not yet checkpointed.  docs/journal-format.md.
//
// Threads: one appender at a time (reserve, write, flush, cancel); release() may run in another
// thread meanwhile.  A record is durable after write() and flush(); space is free after release().
//
// A write or flush of the file that fails, with whatever error, is final (law 8): nobody knows what
// of it was done, or will be.  It is EIO, whose text has the cause, and so is every write and flush
// after it.  What fails before anything was written (no room in the ring, none on the disk to grow)
// may be tried again.
//
// The ring begins small and grows while it is used (grow), up to the size that it may have at most:
// the new part is written with zeros and flushed, then a header that has the larger size, and only
// then a record may stand there.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "journal/flush_budget.h"
#include "journal/format.h"
#include "journal/page_buffer.h"
#include "medium/mutex.h"

namespace pawl::journal {

// To which a journal grows while its records are held (see Journal::keep_what_is_held).
inline constexpr std::uint64_t kHeldBytesMax = std::uint64_t{4} << 30;

// How much a step of growth writes at most.
inline constexpr std::uint64_t kGrowthPieceBytes = std::uint64_t{1} << 20;
// In how many steps a ring reaches its size: it gets so many times larger in each.
inline constexpr std::uint64_t kGrowthFactor = 8;
// A ring grows where at least so many times as much is free on the disk: it must not take what the
// file will need.
inline constexpr std::uint64_t kFreePerGrowth = 4;

// Where a record will stand.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sequence = 0;
};

// Whether the space of records that are held is used again.
enum class Drop { unless_held, held_as_well };

class Journal {
 public:
  // Makes `file` an empty journal of size_bytes (whole blocks of either size), all of it written,
  // whose next record is first_sequence, and whose records are padded to block_bytes.  Records in
  // it become stale; `generation` is its last header's (0: it has none).  With a `list` it is a
  // group's (journal/group_files.h encodes it).  Durable on success; but what
  // had no byte yet, with its name (Medium::publish_journal()).
  // ENOSPC: the disk has no room for it.
  static Result<std::unique_ptr<Journal>> format(
      std::unique_ptr<MediumFile> file, const JournalId& id, const FileIdentity& identity,
      std::uint64_t generation, std::uint64_t first_sequence, std::uint64_t size_bytes,
      std::uint64_t block_bytes, std::vector<std::byte> list = {});

  // A group's: from now on the header has this list.  Durable on success; after a failure the next
  // header may have either.
  Status change_list(std::vector<std::byte> list);

  const JournalId& id() const { return id_; }
  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t block_bytes() const { return block_bytes_; }
  // Of the file.
  std::uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_relaxed); }
  // By records that are not released.
  std::uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  // Bytes of the largest record that fits into the ring.
  std::uint64_t capacity_bytes() const {
    return ring_bytes_.load(std::memory_order_relaxed) - kAreaStart;
  }
  std::uint64_t last_sequence() const;

  // Of one that was just formatted: the ring may grow to so many bytes (whole blocks of either
  // size, with the headers), and no further.
  void may_grow_to(std::uint64_t size_bytes);
  // More of the ring is used than it should be, and it may grow.
  bool wants_growth() const { return wants_growth_.load(std::memory_order_relaxed); }
  // Takes one step of that, as long as a write of kGrowthPieceBytes; beside whoever appends.  True:
  // there is more to do at once.  Where the disk has no room to spare the ring stays as it is until
  // it has gone round: no failure.
  Result<bool> grow();

  // `first_held()` answers with the first record that somebody reads who must find it and all after
  // it, or kNoRecordIsHeld: their space is not used again unless there is no other.  It is asked in
  // any thread.
  void keep_what_is_held(std::function<std::uint64_t()> first_held) {
    first_held_ = std::move(first_held);
  }
  bool is_held() const { return first_held() != kNoRecordIsHeld; }

  // Takes the next sequence number and space for a record of so many bytes, or nothing when the
  // ring has no room until some of it is released.
  std::optional<Place> reserve(std::uint64_t record_bytes);
  // Law 7: before the record is written.  ENOSPC: the place has come to share its blocks with a
  // copy of the journal, and the disk has no others; or every write takes new ones there.
  Status take_own_blocks(const Place& place);
  // Gives back the last place reserved.  Of its record the start, which has the header, must not
  // have been written: with it, recovery might find the record instead of the next one there.
  void cancel(const Place& place);

  Status write(const Place& place, std::uint64_t offset_in_record,
               std::span<const std::byte> bytes);
  Status flush();
  // Of an empty journal that is to be written behind: what is written from now on outlives the
  // process at once, and the budget learns how long flushes take.
  Status prepare_to_write_behind(FlushBudget& budget);
  // A whole record, written and flushed in one.
  Status write_durably(const Place& place, std::span<const std::byte> record);
  // Low 32 bits of the generation of the durable header; for the records written under it.
  std::uint32_t header_generation() const {
    return durable_generation_.load(std::memory_order_relaxed);
  }

  // A record larger than the ring: with the ring empty, it starts at the front, and the file grows
  // with it (extend) until its size is known (settle).  Or one behind records that are held: it
  // starts where they end, which is possible while the ring has not gone round.  Behind others,
  // extend() is ENOSPC past kHeldBytesMax.
  bool can_grow() const;
  Result<Place> reserve_oversize();
  Status extend(Place& place, std::uint64_t record_bytes);
  void settle(const Place& place);

  // Forgets every record up to this sequence: their bytes are durable in the base.  The space is
  // reused only after the header that says so is durable; and where they are held, only with
  // Drop::held_as_well: then whoever reads them finds them gone, and begins anew.
  Status release(std::uint64_t through_sequence, Drop drop = Drop::unless_held);
  // False: it gave all its space back.
  bool has_ring() {
    const std::lock_guard header_lock(header_mutex_);
    return header_.journal_bytes > kAreaStart;
  }
  // Past what the ring may grow to.
  bool has_outgrown() const { return size_bytes() > bytes_max_; }
  // Cuts off what a large record took and the ring may not keep, or what no record was written to,
  // if the ring is empty and the header that says so has room.  The appender's to call.
  Status give_growth_back();

  // Cuts a journal with no record in it to nothing but its headers.  Nothing is written to it any
  // more.
  Status give_all_space_back();

  // Of a journal with no record in it, whose name is gone: its descriptor and its space are free.
  // Nothing but numbers is asked of it any more.
  void let_go_of_file();

  // For reading an oversize record back: its way into the base.
  MediumFile& file() { return *file_; }

 private:
  struct Record {
    std::uint64_t sequence;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  Journal(std::unique_ptr<MediumFile> file, const Header& header, std::uint64_t size_bytes);
  // With the header among them, if there is one.
  struct HeaderBlocks {
    std::uint64_t offset = 0;
    AlignedBuffer memory;
    std::size_t bytes = 0;
    std::span<const std::byte> span() { return {memory.data(), bytes}; }
  };
  Status write_zeros(std::uint64_t offset, std::uint64_t end, HeaderBlocks* header = nullptr);
  // The next header, and what is written of it.
  Result<HeaderBlocks> next_header(Header& next, std::uint64_t tail_offset,
                                   std::uint64_t tail_sequence) const;
  void is_durable(const Header& header);
  Status take_own_blocks(std::uint64_t offset, std::uint64_t end);
  Status write_durably(std::uint64_t offset, std::span<const std::byte> bytes);
  // Durable on success.
  Status write_header(std::uint64_t tail_offset, std::uint64_t tail_sequence);
  // The same, as one that has so many bytes; on failure what there was.
  Status write_header_with(std::uint64_t journal_bytes, std::uint64_t tail_offset,
                           std::uint64_t tail_sequence);
  Status cut(std::uint64_t size_bytes);  // the file

  // Of grow(), with growth_mutex_ held.
  std::uint64_t next_ring_bytes() const;
  Status reserve_growth(std::uint64_t size_bytes);
  Status take_grown(std::uint64_t ring_bytes);
  void refuse_growth();
  std::uint64_t written_end() const {
    const std::lock_guard lock(mutex_);
    return written_end_;
  }

  // Runs a write or a flush, and notes its failure.
  template <class Io>
  Status final_if_it_fails(const Io& io);
  // The same, one at a time: where writes pass through the page cache the kernel reports a failure
  // to the first flush alone.
  template <class Io>
  Status flush_once(const Io& io);

  std::unique_ptr<MediumFile> file_;
  const JournalId id_;
  const std::uint64_t epoch_;
  const std::uint64_t block_bytes_;
  Mutex flush_mutex_;
  std::atomic<bool> has_failed_{false};
  std::mutex failure_mutex_;  // taken last
  Status failure_;            // EIO
  // Whose it is to write behind the ring, or to change the file's size; taken before header_mutex_.
  std::mutex growth_mutex_;
  bool is_oversize_in_hand_ = false;  // a record is written there, and grow() waits for its end
  std::mutex header_mutex_;           // orders header writes; taken before mutex_
  Header header_;
  std::vector<std::byte> list_;  // behind each header; empty but for a group
  std::uint64_t bytes_max_;      // of the ring, as of its bytes: with the headers

  void count_used();         // with mutex_ held
  void ask_for_growth();     // with mutex_ held
  bool goes_round() const {  // with mutex_ held
    return !records_.empty() && head_ <= records_.front().offset;
  }
  std::uint64_t first_held() const {
    return first_held_ == nullptr ? kNoRecordIsHeld : first_held_();
  }

  std::function<std::uint64_t()> first_held_;  // may be empty

  mutable Mutex mutex_;
  // Changed with mutex_ held; each commit reads them without.
  std::atomic<std::uint32_t> durable_generation_{0};
  std::atomic<std::uint64_t> size_bytes_;
  std::atomic<std::uint64_t> ring_bytes_;  // which a durable header has
  std::atomic<std::uint64_t> used_bytes_{0};
  std::atomic<bool> wants_growth_{false};
  bool growth_is_refused_ = false;  // until the ring goes round
  std::uint64_t written_end_;       // up to here every block was written, or is a record's to write
  std::uint64_t head_ = kAreaStart;
  std::uint64_t round_end_ = 0;  // where the records end that have those at the front behind them
  std::uint64_t next_sequence_;
  std::deque<Record> records_;            // whose space is in use, one after another
  std::uint64_t released_sequence_;       // of them, up to here
  bool grows_rather_than_round_ = false;  // what was held had to be dropped: there was not enough
};

// A random id or epoch.
Result<JournalId> random_journal_id();

}  // namespace pawl::journal
