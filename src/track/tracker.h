// A tracker finds which pages of a watched range were stored to.  It knows addresses and pages; it
// knows nothing of files, journals or commits, and works with every medium.
//
// What no tracker sees by itself: stores by a device or kernel thread into memory that was pinned
// before (registered buffers of io_uring, RDMA).  A failing
// compare-and-swap counts as a store: it faults as one does, and so must not run on a page while
// that page is collected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "medium/cache_lines.h"
#include "medium/medium.h"
#include "medium/page_runs.h"
#include "medium/status.h"

namespace pawl {

struct TrackerCounters {
  std::uint64_t scans_flat = 0;     // whole ranges walked
  std::uint64_t scans_located = 0;  // ranges not walked, because the fault log said where to look
};

// The number by which a tracker's tables know the page of an address.
inline std::uint64_t page_of(const void* address) {
  return reinterpret_cast<std::uint64_t>(address) / kPageBytes;
}

// A page, and a bit for each of its 64 cache lines that may have been stored to.
struct StoredLines {
  std::uint64_t page = 0;
  std::uint64_t lines = 0;
};

class Tracker {
 public:
  Tracker() = default;
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;
  virtual ~Tracker() = default;

  // Starts tracking [address, address + length): a private mapping that was just made, in which no
  // page has been written.  Ranges do not overlap; at most kWatchedRangesMax are held (growth adds
  // to the neighbour on its left when it can).
  virtual Status watch(char* address, std::size_t length, int protection) = 0;
  // What it watches there is a private mapping of a file: one fault opens one page, for of such
  // memory the kernel makes no huge pages.  Unsaid, a fault stands for the 2 MiB around it.
  virtual void note_file_memory(const char* /*address*/, std::size_t /*length*/) {}
  // Whether it can watch there at all: asked before something is mapped over what is there.
  virtual Status check_addresses(const char* /*address*/, std::size_t /*length*/) const {
    return {};
  }

  // Stops tracking a watched range or a part of one.  Call it before unmapping or mapping over it.
  virtual void unwatch(char* address, std::size_t length) = 0;

  // Reports the pages of [address, address + length) that may have been stored to since they were
  // last reported, and arms them again.  May report pages outside the range (they too are armed
  // again then) and pages that did not change; never misses one that did.  A store by any thread
  // that happened before the call is seen, and so is what a system call wrote.  Page numbers are
  // addresses divided by kPageBytes.
  // On failure no page is lost: those already taken are in `stored`.  So it is when it throws
  // std::bad_alloc, too.
  virtual Status collect(char* address, std::size_t length, PageRuns& stored) = 0;

  // A tracker that tells lines apart answers with them too: appended in no order, and a page may be
  // there more than once.  The lines of other trackers are all of a page's.
  virtual bool knows_lines() const { return false; }
  virtual Status collect_lines(char* address, std::size_t length, std::vector<StoredLines>& stored);

  // Of a tracker that sees only what it is told: the caller stored here, or took these bytes and
  // could not commit them.  Never fails; what it has no memory for it reports as more than it was.
  virtual void note_store(const char* /*address*/, std::size_t /*length*/) noexcept {}

  // Gives watched pages the protection that the program asks for.  Instead of mprotect, not after
  // it: between the two, stores of other threads could go unseen.
  virtual Status protect(char* address, std::size_t length, int protection) = 0;

  // To be called before pages are locked in memory, and once they are: from then on nothing comes
  // back of what it takes away.  Where the kernel reclaimed a page that the tracker had armed, it
  // leaves a marker; a page fault in locked memory does not get past that, and is tried again for
  // ever (Linux 6.10 and later: filemap_fault() takes it for a page that another fault mapped).
  virtual Status clear_markers(char* /*address*/, std::size_t /*length*/) { return {}; }
  // To be called behind each cut of the file and each hole in it, for which the kernel takes locked
  // pages away as well, and more of them than were cut: the pages of a large folio, or on XFS of a
  // block.  Does nothing where no memory was locked.  Takes no lock that is held while memory is
  // touched: the thread that holds it may be the one that waits for this.
  virtual void clear_markers_behind_cut() noexcept {}
  // Whether there may be any.
  virtual bool leaves_markers() const { return false; }

  virtual const char* name() const = 0;
  virtual TrackerCounters counters() const = 0;
};

inline constexpr std::size_t kWatchedRangesMax = 1024;  // in the whole process

// What this kernel and this process's permissions allow.
struct TrackerSupport {
  bool scan = false;        // userfaultfd WP_ASYNC and PAGEMAP_SCAN
  bool fault_log = false;   // perf page-fault samples, so that a scan need not walk the mapping
  std::string scan_reason;  // why not, when not
  std::string fault_log_reason;
};
TrackerSupport probe_trackers();

// Each makes a tracker for one mapping, or says why it cannot be had.
// `others_store`: other processes may store into this one's memory.  Where they never do, large
// mappings are cheaper to collect on a busy machine.
Result<std::unique_ptr<Tracker>> make_scan_tracker(bool others_store = true);
Result<std::unique_ptr<Tracker>> make_fault_tracker();
// Sees the stores of code that pawl-clang compiled, and what pawl_stored() is told; no others.
// Watches only within [kStoreRegionFirst, kStoreRegionEnd): EINVAL elsewhere.
Result<std::unique_ptr<Tracker>> make_store_tracker();

// Where mappings must lie for compiled marks to see them: the compiler's check of an address knows
// nothing else.  Addresses that stay free under ASLR.  The pass has these numbers, too.  The thread
// sanitizer has those addresses for itself, and leaves others.
#ifdef __SANITIZE_THREAD__
inline constexpr std::uint64_t kStoreRegionFirst = std::uint64_t{0x56} << 40;
inline constexpr std::uint64_t kStoreRegionEnd = std::uint64_t{0x57} << 40;
// The program's part of them ends before that.
inline constexpr std::uint64_t kStoreMappingsEnd = std::uint64_t{0x568} << 36;
#else
inline constexpr std::uint64_t kStoreRegionFirst = std::uint64_t{0x08} << 40;
inline constexpr std::uint64_t kStoreRegionEnd = std::uint64_t{0x55} << 40;
inline constexpr std::uint64_t kStoreMappingsEnd = kStoreRegionEnd;
#endif

// True while any range is watched by a fault tracker, and in a forked child that has ranges of its
// parent (inherited_ranges.h): the kernel cannot store into protected pages on a program's behalf
// (EFAULT), so callers open them first.
bool fault_tracker_in_use();
// Opens the fault-tracked pages of the range for a store by the kernel.  Async-signal-safe.
void open_for_kernel_store(const void* address, std::size_t length);

}  // namespace pawl
