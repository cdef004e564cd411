#include "track/scan_tracker.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <vector>

#include "medium/medium.h"
#include "medium/memory_functions.h"
#include "track/fault_log.h"
#include "track/stated_stores.h"
#include "track/write_watch.h"

namespace pawl {

namespace {

// Measured: a scan costs 1 us, and 2 ns a page.  So few spans are looked at one by one, many are
// bridged and walked through.
constexpr std::size_t kSingleSpansMax = 32;
constexpr std::uint64_t kBridgedGapPages = 512;
// One fault may have opened as much in memory of no file, where the program asked for huge pages
// past Pawl.  To look at all of it costs 8 us more than to look at the page, most of it because the
// processors forget what they know of all 2 MiB.
constexpr std::uint64_t kHugePages = (std::uint64_t{2} << 20) / kPageBytes;
// A walk of many pages may have met pages that were only read, once each.  From this many reported
// pages on, runs of at least so many pages are looked at more closely, so that a large mapping of a
// file that was only read is not compared byte by byte.
constexpr std::uint64_t kCloserLookPages = 16;
constexpr std::uint64_t kCloserLookRunPages = 8;

class ScanTracker final : public Tracker {
 public:
  ScanTracker(std::unique_ptr<WriteWatch> write_watch, ScanMode mode, FaultsOf whose)
      : write_watch_(std::move(write_watch)), mode_(mode), whose_(whose) {}
  ~ScanTracker() override { StatedStores::unwatch(this, 0, ~std::uint64_t{0}); }

  Status watch(char* address, std::size_t length, int protection) override;
  void note_file_memory(const char* address, std::size_t length) override;
  void unwatch(char* address, std::size_t length) override;
  Status collect(char* address, std::size_t length, PageRuns& stored) override;
  Status protect(char* address, std::size_t length, int protection) override;
  Status clear_markers(char* address, std::size_t length) override;
  void clear_markers_behind_cut() noexcept override;
  bool leaves_markers() const override { return true; }
  const char* name() const override { return "scan"; }
  TrackerCounters counters() const override {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  bool is_own_process() const { return getpid() == process_; }
  Status join_fault_log();
  Status clear_markers_in(PageRuns& watched);
  Status find_track();
  void take_stated();
  Status collect_known(std::uint64_t first, std::uint64_t end, PageRuns& stored);
  Status collect_pages(std::uint64_t first, std::uint64_t end, PageRuns& stored,
                       bool* walked = nullptr);
  Status walk(PageRuns to_walk, PageRuns& stored);
  Status check_watch(std::uint64_t first, std::uint64_t end);
  void add_faulted(std::uint64_t page);
  Status look(const PageRuns& to_look, PageRuns& stored);
  std::vector<PageRun> spans(const PageRuns& pages, std::uint64_t gap_pages);
  void leave_out_read_pages(PageRuns& written);

  const std::unique_ptr<WriteWatch> write_watch_;
  const ScanMode mode_;
  const FaultsOf whose_;
  // The descriptors speak of the memory of the process that opened them.
  const pid_t process_ = getpid();

  mutable std::mutex mutex_;  // guards what follows
  PageRuns ranges_;
  PageRuns of_files_;  // of these, what one fault opens one page of
  PageRuns early_;     // stored to before they were watched, or so stated; not yet reported
  PageRuns unknown_;   // the fault log cannot speak for them: to be walked
  PageRuns faulted_;   // the fault log named a page of their 2 MiB: to be looked at
  // Memory ran out with pages in hand: what is above, but for the ranges, may lack some.
  bool lost_track_ = false;
  bool may_be_locked_ = false;                 // some of the memory
  std::unique_ptr<FaultLogClient> fault_log_;  // null: every collect walks
  bool fault_log_refused_ = false;
  TrackerCounters counters_;
};

Status ScanTracker::watch(char* address, std::size_t length, int /*protection*/) {
  if (!is_own_process())
    return Status::failure(EPERM, PAWL_ERROR_FORKED_CHILD,
                           "a forked child cannot track its parent's mapping");
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = reinterpret_cast<std::uint64_t>(address) / kPageBytes;
  const std::uint64_t end = first + length / kPageBytes;
  PAWL_ASSERT(first < end);
  if (ranges_.runs().size() >= kWatchedRangesMax) {
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY, "too many ranges are watched; unmap some");
  }
  // One huge page would be armed and reported as a whole, and its parts would not fault one by one.
  // Kernels without huge pages refuse, and need not be asked.
  (void)memory::advise(address, length, MADV_NOHUGEPAGE);
  PAWL_TRY(StatedStores::watch(this, first, end));
  if (Status status = write_watch_->add(first, end); !status.ok()) {
    StatedStores::unwatch(this, first, end);
    return status;
  }
  ranges_.add(first, end - first);
  unknown_.add(first, end - first);
  if (fault_log_ != nullptr) fault_log_->add_range(first, end);
  if (Status status = join_fault_log(); !status.ok()) {
    (void)write_watch_->remove(first, end);
    ranges_.take(first, end);
    unknown_.take(first, end);
    StatedStores::unwatch(this, first, end);
    return status;
  }
  // A fresh mapping is walked in no time, and the first collect then need not walk it.
  // Failing, it leaves the range unknown, and the first collect walks after all.
  try {
    if (fault_log_ != nullptr) (void)collect_pages(first, end, early_);
  } catch (const std::bad_alloc&) {
    lost_track_ = true;
  }
  return {};
}

void ScanTracker::note_file_memory(const char* address, std::size_t length) {
  const std::lock_guard lock(mutex_);
  of_files_.add(page_of(address), length / kPageBytes);
}

Status ScanTracker::join_fault_log() {
  if (fault_log_ != nullptr || fault_log_refused_ || mode_ == ScanMode::flat) return {};
  if (mode_ == ScanMode::automatic && ranges_.page_count() * kPageBytes < kLocatedScanBytesMin)
    return {};
  Result<std::unique_ptr<FaultLogClient>> client = FaultLogClient::join(whose_);
  if (!client.ok()) {
    if (mode_ == ScanMode::located) return client.status();
    fault_log_refused_ = true;
    return {};
  }
  fault_log_ = std::move(client.value());
  for (const PageRun& run : ranges_.runs()) fault_log_->add_range(run.first, run.end());
  return {};
}

void ScanTracker::unwatch(char* address, std::size_t length) {
  if (!is_own_process()) return;
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = reinterpret_cast<std::uint64_t>(address) / kPageBytes;
  const std::uint64_t end = first + length / kPageBytes;
  // Failing, it leaves pages armed that nobody asks about: a store to them costs a fault more.
  for (const PageRun& run : ranges_.runs()) {
    const std::uint64_t low = std::max(run.first, first);
    const std::uint64_t high = std::min(run.end(), end);
    if (low < high) (void)write_watch_->remove(low, high);
  }
  ranges_.drop(first, end);
  if (fault_log_ != nullptr) fault_log_->remove_range(first, end);
  StatedStores::unwatch(this, first, end);
  of_files_.drop(first, end);
  early_.drop(first, end);
  unknown_.drop(first, end);
  faulted_.drop(first, end);
}

// Write-protection by userfaultfd goes with any protection of the program's, and stays through all.
Status ScanTracker::protect(char* address, std::size_t length, int protection) {
  if (memory::protect(address, length, protection) == 0) return {};
  return FailedCall{errno, "cannot change the protection of a mapping"};
}

Status ScanTracker::clear_markers(char* address, std::size_t length) {
  if (!is_own_process()) return {};
  const std::lock_guard lock(mutex_);
  may_be_locked_ = true;
  PageRuns watched = ranges_;
  PageRuns inside = watched.take(page_of(address), page_of(address) + length / kPageBytes);
  return clear_markers_in(inside);
}

void ScanTracker::clear_markers_behind_cut() noexcept {
  if (!is_own_process()) return;
  const std::lock_guard lock(mutex_);
  if (!may_be_locked_ && !memory::locks_all()) return;
  (void)clear_markers_in(ranges_);
}

// Pages that are swapped out are disarmed with the markers, and a store to one that was read in
// meanwhile takes no fault: the log cannot speak for them.
Status ScanTracker::clear_markers_in(PageRuns& watched) try {
  for (const PageRun& run : watched.runs()) {
    PageRuns disarmed;
    const Status outcome = write_watch_->disarm_absent(run.first, run.end(), disarmed);
    if (fault_log_ != nullptr) {
      for (const PageRun& pages : disarmed.runs()) unknown_.add(pages.first, pages.count);
    }
    PAWL_TRY(outcome);
  }
  return {};
} catch (const std::bad_alloc&) {
  lost_track_ = true;
  return Status::no_memory("no memory to clear the markers of a mapping; free some and call again");
}

Status ScanTracker::collect(char* address, std::size_t length, PageRuns& stored) {
  if (!is_own_process())
    return Status::failure(EPERM, PAWL_ERROR_FORKED_CHILD,
                           "a forked child cannot track its parent's mapping");
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = reinterpret_cast<std::uint64_t>(address) / kPageBytes;
  const std::uint64_t end = first + length / kPageBytes;
  try {
    return collect_known(first, end, stored);
  } catch (const std::bad_alloc&) {
    lost_track_ = true;
    return Status::no_memory("no memory to look for changed pages; free some and call again");
  }
}

// No page that was stored to is the file's.  All others are reported once more, and walked.
Status ScanTracker::find_track() {
  for (const PageRun& run : ranges_.runs()) {
    std::uint64_t next = run.first;
    PAWL_TRY(write_watch_->find_not_of_file(next, run.end(), early_));
  }
  if (fault_log_ != nullptr) unknown_ = ranges_;
  faulted_.clear();
  lost_track_ = false;
  return {};
}

// Of a range that was unwatched in part, what is watched.
void ScanTracker::take_stated() {
  PageRuns stated;
  StatedStores::take(this, stated);
  for (const PageRun& range : ranges_.runs()) early_.add(stated.take(range.first, range.end()));
}

Status ScanTracker::collect_known(std::uint64_t first, std::uint64_t end, PageRuns& stored) {
  PAWL_TRY(write_watch_->check_open());
  if (lost_track_) PAWL_TRY(find_track());
  if (StatedStores::in_use()) take_stated();
  stored.add(early_.take(first, end));
  bool walked = false;
  const Status outcome = collect_pages(first, end, stored, &walked);
  ++(walked ? counters_.scans_flat : counters_.scans_located);
  return outcome;
}

Status ScanTracker::collect_pages(std::uint64_t first, std::uint64_t end, PageRuns& stored,
                                  bool* walked) {
  PageRuns to_walk;
  PageRuns to_look;
  if (fault_log_ == nullptr) {
    for (const PageRun& run : ranges_.runs()) {
      const std::uint64_t low = std::max(run.first, first);
      const std::uint64_t high = std::min(run.end(), end);
      if (low < high) to_walk.add(low, high - low);
    }
  } else {
    std::vector<std::uint64_t> pages;
    if (fault_log_->take(pages)) {
      for (const std::uint64_t page : pages) add_faulted(page);
      PAWL_TRY(check_watch(first, end));
    } else {
      unknown_ = ranges_;
      faulted_.clear();
    }
    to_walk = unknown_.take(first, end);
    to_look = faulted_.take(first, end);
  }

  const bool walks = !to_walk.empty();
  if (walked != nullptr) *walked = walks;
  PAWL_TRY(look(to_look, stored));
  PAWL_TRY(walk(std::move(to_walk), stored));
  return {};
}

// Pages that are not watched any more do not fault, and the log would be believed for ever.  To
// close the descriptor ends the watch of all pages, so that one page of each range is asked about.
// The kernel ends it in one step for all who ask: a store that went without a fault before this
// collect began is noticed.
Status ScanTracker::check_watch(std::uint64_t first, std::uint64_t end) {
  for (const PageRun& run : ranges_.runs()) {
    const std::uint64_t page = std::max(run.first, first);
    if (page < std::min(run.end(), end)) PAWL_TRY(write_watch_->check(page));
  }
  return {};
}

Status ScanTracker::walk(PageRuns to_walk, PageRuns& stored) {
  PageRuns written;
  Status outcome;
  for (const PageRun& run : to_walk.runs()) {
    std::uint64_t next = run.first;
    if (outcome.ok()) outcome = write_watch_->take(next, run.end(), written);
    if (!outcome.ok()) unknown_.add(next, run.end() - next);
  }
  leave_out_read_pages(written);
  stored.add(written);
  return outcome;
}

// Joins the pages over gaps of at most `gap_pages`, but not from one watched range to the next.
std::vector<PageRun> ScanTracker::spans(const PageRuns& pages, std::uint64_t gap_pages) {
  std::vector<PageRun> spans;
  PageRuns rest = pages;
  for (const PageRun& range : ranges_.runs()) {
    bool first_of_range = true;
    PageRuns inside = rest.take(range.first, range.end());
    for (const PageRun& run : inside.runs()) {
      if (!first_of_range && run.first <= spans.back().end() + gap_pages) {
        spans.back().count = run.end() - spans.back().first;
      } else {
        spans.push_back(run);
      }
      first_of_range = false;
    }
  }
  return spans;
}

// Of the huge page that may have been there, what is watched.
void ScanTracker::add_faulted(std::uint64_t page) {
  if (of_files_.contains(page)) return faulted_.add(page, 1);
  const std::uint64_t first = page / kHugePages * kHugePages;
  const std::vector<PageRun>& runs = ranges_.runs();
  auto range =
      std::upper_bound(runs.begin(), runs.end(), first,
                       [](std::uint64_t value, const PageRun& run) { return value < run.end(); });
  for (; range != runs.end() && range->first < first + kHugePages; ++range) {
    const std::uint64_t low = std::max(range->first, first);
    const std::uint64_t high = std::min(range->end(), first + kHugePages);
    faulted_.add(low, high - low);
  }
}

Status ScanTracker::look(const PageRuns& to_look, PageRuns& stored) {
  std::vector<PageRun> to_scan = spans(to_look, 0);
  if (to_scan.size() > kSingleSpansMax) to_scan = spans(to_look, kBridgedGapPages);

  PageRuns written;
  Status outcome;
  for (const PageRun& span : to_scan) {
    std::uint64_t next = span.first;
    if (outcome.ok()) outcome = write_watch_->take(next, span.end(), written);
    if (!outcome.ok()) faulted_.add(next, span.end() - next);
  }
  leave_out_read_pages(written);
  stored.add(written);
  return outcome;
}

void ScanTracker::leave_out_read_pages(PageRuns& written) {
  if (written.page_count() <= kCloserLookPages) return;
  PageRuns kept;
  for (const PageRun& run : written.runs()) {
    std::uint64_t next = run.first;
    if (run.count >= kCloserLookRunPages &&
        write_watch_->find_not_of_file(next, run.end(), kept).ok())
      continue;
    kept.add(next, run.end() - next);
  }
  written = std::move(kept);
}

}  // namespace

Result<std::unique_ptr<Tracker>> make_scan_tracker_with(ScanMode mode, FaultsOf whose) {
  Result<std::unique_ptr<WriteWatch>> write_watch = WriteWatch::open();
  if (!write_watch.ok()) return write_watch.status();
  if (mode == ScanMode::located) PAWL_TRY(probe_fault_log());
  return std::unique_ptr<Tracker>(new ScanTracker(std::move(write_watch.value()), mode, whose));
}

Result<std::unique_ptr<Tracker>> make_scan_tracker(bool others_store) {
  return make_scan_tracker_with(ScanMode::automatic,
                                others_store ? FaultsOf::machine : FaultsOf::process);
}

}  // namespace pawl
