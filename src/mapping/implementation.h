// What a Mapping is made of.  The public functions lock mutex_ and check that the mapping still
// takes calls; functions that end in _locked expect that.
//
// Locks, outermost first: mutex_, which is its CommitLog's, then those of Checkpointer,
// BatchWriter, Journal, CommittedImage.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "journal/committed_image.h"
#include "journal/group_files.h"
#include "journal/journal.h"
#include "mapping/commit_log.h"
#include "mapping/mapping.h"
#include "mapping/statistics.h"
#include "mapping/taken_pages.h"
#include "mapping/view.h"
#include "medium/memory_functions.h"
#include "medium/own_process.h"
#include "track/tracker.h"

namespace pawl {

class Group;
class PlaceInHand;

// A commit of more dirty pages than this goes past the overlay, straight from its durable record
// into the base.
inline constexpr std::uint64_t kStagedPagesMax = 2048;
static_assert(kStagedPagesMax * journal::range_bytes(kPageBytes) + sizeof(journal::RecordHeader) +
                  journal::range_bytes(journal::kGroupFilesMax * sizeof(journal::FileSize)) +
                  journal::kBlockBytes <=
              journal::kRecordBufferMax);

class Mapping::Implementation {
 public:
  // `number`: by which the log's records name the file; 0: they are about no other.
  Implementation(std::unique_ptr<Medium> medium, const Options& options,
                 std::shared_ptr<CommitLog> log, std::uint64_t number,
                 std::unique_ptr<Tracker> tracker, std::uint64_t size_bytes,
                 std::uint64_t records_replayed);
  ~Implementation();

  // mapping.cc
  template <class Outcome, class Call>
  Outcome in_turn(Call call);
  template <class Outcome, class Call>
  Outcome in_order(Call call);
  template <class Call>
  Status on_range(const void* address, std::size_t length, Call call);

  // open_close.cc
  static Result<std::unique_ptr<Mapping>> open(std::unique_ptr<Medium> medium,
                                               const Options& options);
  static Result<std::unique_ptr<Mapping>> open_in(const std::shared_ptr<Group>& group,
                                                  std::unique_ptr<Medium> medium);
  struct Joining;  // a group, with its lock held
  static Status join_group(const std::shared_ptr<Group>& group, Joining& joining);
  static void leave_again(Group& group, Joining& joining) noexcept;
  void lock_for_fork();
  void unlock_after_fork();
  Status end_locked();
  Status close_locked();
  Status leave_locked();
  Status discard_locked();
  Status end_empty_journal();

  // stepped_aside.cc
  Status step_aside_locked(Aside aside);
  Status let_go(Aside aside);
  Status come_back();  // after let_go(), which may have been refused something
  Status come_back_locked();
  Status give_journal_up_locked();
  Status leave_in_base_locked();
  void leave_in_memory_locked() noexcept;
  void take_over_locked(Implementation& aside);

  // windows.cc
  Status map_where_marked(View& view, void* hint, std::size_t length, int protection,
                          std::uint64_t file_offset, std::uint64_t base_bytes) const;
  Status map_view(View& view, void* address, std::size_t length, int protection, int flags,
                  std::uint64_t file_offset);
  Status show_what_is_pending(View& view, std::uint64_t base_bytes);
  Result<char*> map_window_locked(void* address, std::size_t length, int protection, int flags,
                                  std::uint64_t file_offset);
  Status unmap_window_locked(bool keep);
  Result<char*> remap_window_locked(std::size_t new_length, bool may_move, void* fixed_address,
                                    memory::LeftPlace& left);
  Status lengthen_window(std::size_t added);
  Status shorten_window(std::size_t new_length, memory::LeftPlace& left);
  Status move_window(std::size_t new_length, void* address, memory::LeftPlace& left);

  // advice.cc
  Status advise_locked(std::uint64_t first_page, std::uint64_t end_page, int advice);
  Status clear_markers_locked(std::uint64_t first_page, std::uint64_t end_page) const;
  Status lock_memory_locked(std::uint64_t first_page, std::uint64_t end_page, unsigned flags) const;
  Status advise_kernel(std::uint64_t first_page, std::uint64_t end_page, int advice) const;
  Status punch(std::uint64_t first_page, std::uint64_t end_page);

  // commits.cc
  enum class Durability { now, queued };
  // File pages [first, end) of the window, and all writes outside it.
  Status commit_locked(std::uint64_t first_page, std::uint64_t end_page, Durability durability);
  // Everything in several files of one log, by one record.
  using Files = std::span<Implementation* const>;
  static Status commit_whole(Files files, Durability durability);
  // Lives while records go straight into bases, which may be cut for that, and may fail.
  class BaseCut {
   public:
    explicit BaseCut(Files files) : files_(files) {}
    ~BaseCut() {
      for (const Implementation* file : files_) file->tracker_->clear_markers_behind_cut();
    }
    BaseCut(const BaseCut&) = delete;
    BaseCut& operator=(const BaseCut&) = delete;

   private:
    const Files files_;
  };
  // Every record that was queued or waits, into the base; and flushed there, and dropped.
  Status apply_all();
  // Where a snapshot holds the records it gives way: it finds them gone, and begins anew.
  Status checkpoint_all();
  Status roll_back_locked(std::uint64_t first_page, std::uint64_t end_page, bool whole);
  // pages.cc
  // What take_pages() gave and was not used after all is kept for the next.
  Status take_pages(std::uint64_t first_page, std::uint64_t end_page, TakenPages& taken);
  void keep_pages(const TakenPages& taken) noexcept;

  // in_place.cc
  // Whether the lines that the tracker named can be logged as they are, and nothing else is to do.
  bool lines_are_enough(const TakenPages& pages) const;
  Status record_lines(const TakenPages& pages);
  Status commit_lines(std::uint64_t first_page, std::uint64_t end_page);
  Status commit_in_place(journal::RecordBuilder& record);
  Status write_in_place(journal::RecordBuilder& record, std::uint64_t& sequence);
  Status flush_in_place(std::uint64_t sequence);
  void write_waiting();
  void let_wait(std::uint64_t sequence, journal::RecordBuilder& record);
  Status settle_in_place();
  Status apply_in_place(std::span<const std::byte> record, std::uint64_t sequence);

  // verify.cc
  // PAWL_VERIFY: what changed in the range and is not among the taken lines is reported, and taken.
  Status find_unmarked(std::uint64_t first_page, std::uint64_t end_page, TakenPages& taken);

  // file_io.cc
  Status truncate_locked(std::uint64_t size_bytes);
  Result<std::size_t> read_locked(std::uint64_t offset, std::span<std::byte> into);
  Status write_locked(std::uint64_t offset, std::span<const std::byte> from);
  Status have_outside(std::uint64_t first_page, std::uint64_t end_page);
  Status put_locked(std::uint64_t offset, std::span<const std::byte> from);
  Result<bool> can_be_touched(const View& view, std::uint64_t page) const;
  Status load_from_view(std::uint64_t page, std::size_t in_page, std::span<std::byte> into);
  Status store_in_view(std::uint64_t offset, std::span<const std::byte> from) {
    return store_in(view_, offset, from);
  }
  Status store_in(View& view, std::uint64_t offset, std::span<const std::byte> from) const;

  // The reason why there are no more commits, if there is one.
  Status usable() const {
    const bool is_usable = !abandoned_.load() && owner_.has_this_memory() && !closed_.load() &&
                           !log_->failures().has_final();
    return is_usable ? Status{} : why_not_usable();
  }
  // Asked before any lock is taken: in a child it may be held for ever, or be the parent's.
  bool is_in_child() const { return abandoned_.load() || !owner_.is_this(); }
  Status in_own_process() const;
  // In a child with a copy of the memory, whose parent knew nothing of it, another thread of the
  // parent may hold the image's lock, for ever.
  bool image_is_left_locked() const { return !owner_.has_this_memory() && image_.is_locked(); }
  Status note(Status status) {
    return status.ok() ? std::move(status) : log_->failures().note(std::move(status));
  }
  void note_final(const Status& status) noexcept { log_->failures().note_final(status); }
  // File pages of an address range of the window; EINVAL, ENOMEM as msync(2).
  Status pages_of(const void* address, std::size_t length, std::uint64_t& first,
                  std::uint64_t& end) const;
  // The background does not keep up.
  bool overlay_is_full() const {
    return image_.waiting_pages() >
           std::max(kOverlayPagesMax, 2 * std::size_t{options_.apply_threshold_pages});
  }
  // In records.
  std::uint64_t range_offset(std::uint64_t offset) const {
    return (number_ << journal::kFileNumberShift) + offset;
  }
  std::uint64_t size_bytes_max() const {
    return number_ == 0 ? journal::kFileSizeMax : journal::kGroupFileSizeMax;
  }
  std::uint64_t truncate_to() const {
    return lowest_size_ < image_.size() ? lowest_size_ : journal::kNoTruncation;
  }
  bool size_is_pending() const { return size_ != image_.size() || lowest_size_ < image_.size(); }
  // The committed copy of a page, with the record that waits.
  Result<CommittedImage::Page> committed_page(std::uint64_t page);
  // The same as the commit in hand will find it: cut where the file was cut.
  Result<CommittedImage::Page> page_before(std::uint64_t page);
  std::byte* bytes_now(std::uint64_t page);

  std::unique_ptr<Medium> medium_;
  const Options options_;
  // Its threads end before the medium goes, and with that the writer's lock.
  const std::shared_ptr<CommitLog> log_;
  const std::uint64_t number_;
  Group* group_ = nullptr;                          // that it has joined, if it has
  std::optional<journal::MemberSide> member_side_;  // of a file that joins a group
  std::uint64_t rights_in_group_ = 0;  // as the medium saw them when the journal was limited
  Mutex& mutex_;                       // the log's, as are the next three
  journal::Journal* const journal_;
  using Checkpointer = journal::Checkpointer;
  Checkpointer& checkpointer_;
  journal::BatchWriter& batches_;
  // On a medium that is memory; then nothing ever waits in the overlay or in a queue.
  const std::byte* const base_in_place_;
  CommittedImage image_;
  std::unique_ptr<Tracker> tracker_;
  View view_;

  PageCheck page_check_;       // may be empty
  std::uint64_t size_;         // as the program sees it
  std::uint64_t lowest_size_;  // since the last commit
  PageRuns pending_;           // window pages that the tracker gave and no commit took
  // Memory ran out with pages from here to there in hand: each may have changed.
  std::uint64_t unsure_first_ = ~std::uint64_t{0};
  std::uint64_t unsure_end_ = 0;
  std::map<std::uint64_t, std::unique_ptr<PageBuffer>>
      outside_;                      // pages written by write() outside the window
  std::uint64_t private_pages_ = 0;  // at most so many pages of the view are private memory
  const OwnProcess owner_;
  std::atomic<bool> abandoned_{false};  // in a child of fork()
  bool is_locked_for_fork_ = false;     // of the fork in hand
  std::atomic<bool> closed_{false};
  bool has_left_ = false;  // the file has all that was committed, and nothing else knows of it
  bool has_journal_ = true;
  bool keeps_number_ = false;  // of the group's list, while it is aside

  // Guarded by mutex_.
  std::uint64_t commits_ = 0;
  std::uint64_t bytes_logged_ = 0;
  std::uint64_t bytes_changed_ = 0;
  std::uint64_t dirty_pages_ = 0;
  std::uint64_t changed_pages_ = 0;
  std::uint64_t stalls_ = 0;
  std::uint64_t rollbacks_ = 0;
  std::uint64_t pages_dropped_ = 0;
  std::uint64_t unmarked_bytes_ = 0;
  const std::uint64_t records_replayed_;
  AlignedBuffer record_memory_;  // kept from one commit to the next
  // Of the commit in hand; their memory is kept, too.
  TakenPages taken_;                     // from the tracker
  TakenPages with_outside_;              // and those written outside of the window, if any
  const TakenPages* in_hand_ = nullptr;  // one of the two
  struct Change {
    std::uint64_t page;
    CommittedImage::Page committed;
  };
  std::vector<Change> changes_;
  PageRuns changed_runs_;  // that are to be written to the base
  std::uint64_t bytes_changed_in_hand_ = 0;
  std::uint64_t changed_pages_in_hand_ = 0;
  // On a medium that is memory: of lines that were named, kept from one commit to the next;
  journal::RecordBuilder lines_record_;
  // and the last record, when its bytes are not yet in the base.
  struct Waiting {
    AlignedBuffer memory;
    std::size_t bytes = 0;  // 0: none waits
    std::uint64_t sequence = 0;
    std::span<const std::byte> record() { return {memory.data(), bytes}; }
  };
  Waiting waiting_;

 private:
  enum class Keep { pages, nothing };  // that changed, for patch_image()
  Status why_not_usable() const;
  Status collect_changes(journal::RecordBuilder& record, Keep keep);
  Status take_space();
  static Status take_space_of_all(Files files, std::uint64_t record_bytes);
  Status check_size_limit(std::uint64_t written_end) const;
  Status take_known_pages(std::uint64_t first_page, std::uint64_t end_page, TakenPages& taken);
  void note_lines(const StoredLines& stored) const noexcept;
  void take_unsure_pages();
  void be_unsure_of(std::uint64_t first_page, std::uint64_t end_page) noexcept;
  void forget_pages() noexcept;  // of the window, which is as the committed image is, or goes
  Status take_outside(std::uint64_t first_page, std::uint64_t end_page, TakenPages& taken);
  Status keep_outside(const TakenPages& taken);
  void leave_in_window(const TakenPages& taken) noexcept;
  Status put_in_base(std::uint64_t page, std::span<const std::byte> bytes) const;
  const std::byte* committed_in_place(std::uint64_t page) const;
  bool marks_are_enough(std::uint64_t page, std::uint64_t lines) const;
  Status check_before_commit();
  Result<CommittedImage::Page> page_outside(std::uint64_t page);
  Status check_journal_of_group() const;
  Status take_in_hand(std::uint64_t first_page, std::uint64_t end_page);
  Status join_outside(std::uint64_t first_page, std::uint64_t end_page);
  static Status commit_in_hand(Files files, Durability durability);
  static Status collect(Files files, journal::RecordBuilder& record, Keep keep, bool& is_empty);
  static Status commit_taken(Files files, std::uint64_t first_page, std::uint64_t end_page,
                             Durability durability);
  static void give_back(Files files);
  static void end_commit(Files files, std::uint64_t first_page, std::uint64_t end_page);
  static void after_commit(Files files, std::uint64_t first_page, std::uint64_t end_page);
  // Of what after_commit() does, where the base is memory.
  bool has_more_to_do() const {
    return journal_->has_outgrown() || journal_->wants_growth() || checkpointer_.is_due() ||
           private_pages_ * kPageBytes > options_.resident_bytes_max;
  }
  void make_room(bool an_overlay_is_full);
  static Status commit_staged(Files files, Durability durability);
  Status refuse_to_commit(const Status& nameless) const;
  Status commit_record(Files files, journal::RecordBuilder& record, Durability durability);
  Status could_not_write(const Status& failure, PlaceInHand& in_hand);
  Status commit_behind(Files files, const journal::Place& place, PlaceInHand& in_hand,
                       journal::RecordBuilder& record);
  static Status commit_direct(Files files);
  Status commit_behind_the_rest(Files files);
  Result<journal::Place> place_for(std::uint64_t record_bytes);
  Result<journal::Place> place_behind_the_rest(std::uint64_t record_bytes) const;
  journal::RecordHeader header_for(const journal::Place& place) const;
  Status roll_back_pages(const TakenPages& taken);
  Status roll_back_whole(const TakenPages& taken);
  void patch_image_with(std::span<const std::byte> record, std::uint64_t sequence);
  // False: it failed, which is final.
  bool patch_image(std::span<const std::byte> record, std::uint64_t sequence);
  static bool patch_images(Files files, std::span<const std::byte> record, std::uint64_t sequence);
  Status apply_direct(Files files, const journal::Place& place, bool& is_held);
  static void count(Files files, const journal::Place& place);
  void shrink_journal();
  Status bound_memory();
};

}  // namespace pawl
