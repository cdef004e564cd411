#include "track/store_marks.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <new>

#include "medium/medium.h"
#include "medium/spin_lock.h"
#include "track/thread_marks.h"
#include "track/watched_area.h"

namespace pawl {

namespace {

// Threads beyond them mark under the lock.
constexpr std::size_t kTablesMax = 16384;
// How many tables a thread looks at for one that a dead thread left, before it makes another.
constexpr std::uint32_t kTablesTried = 8;
// A collect of few pages looks for them in every table instead of emptying all.
constexpr std::uint64_t kProbesMax = 64;
// Marks that handlers make while their thread holds the lock.  When they are more, all that is
// watched counts as stored to.
constexpr std::size_t kDivertedMax = 64;

// Every access to these is one instruction, also in a library: no memory is taken on the way, which
// a signal handler could not do.
#define PAWL_THREAD_STATE constinit thread_local __attribute__((tls_model("initial-exec")))
PAWL_THREAD_STATE ThreadMarks* marks_of_thread = nullptr;
// While the thread takes or holds the lock: its handlers can do neither.
PAWL_THREAD_STATE std::atomic<bool> is_busy{false};

std::uint64_t lines_between(std::uint64_t first_byte, std::uint64_t last_byte) noexcept {
  const std::uint64_t first = first_byte % kPageBytes / kLineBytes;
  const std::uint64_t last = last_byte % kPageBytes / kLineBytes;
  return (kAllLines << first) & (kAllLines >> (63 - last));
}

struct Pages {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t lines = 0;
};

// Marks that wait for whoever holds the lock.  Any number of handlers may add.
class DivertedMarks {
 public:
  void add(const Pages& pages) noexcept {
    for (Place& place : places_) {
      State expected = State::free;
      if (!place.state.compare_exchange_strong(expected, State::taken)) continue;
      place.first.store(pages.first, std::memory_order_relaxed);
      place.end.store(pages.end, std::memory_order_relaxed);
      place.lines.store(pages.lines, std::memory_order_relaxed);
      place.state.store(State::full);
      any_.store(true);
      return;
    }
    too_many_.store(true);
    any_.store(true);
  }
  bool any() const { return any_.load(); }
  // With the lock held.  False when there were too many.
  template <class Visit>
  bool take(Visit&& visit) {
    any_.store(false);
    for (Place& place : places_) {
      if (place.state.load() != State::full) continue;
      const Pages pages{place.first.load(std::memory_order_relaxed),
                        place.end.load(std::memory_order_relaxed),
                        place.lines.load(std::memory_order_relaxed)};
      place.state.store(State::free);
      visit(pages);
    }
    return !too_many_.exchange(false);
  }

 private:
  enum class State { free, taken, full };
  struct Place {
    std::atomic<State> state{State::free};
    std::atomic<std::uint64_t> first{0};
    std::atomic<std::uint64_t> end{0};
    std::atomic<std::uint64_t> lines{0};
  };
  std::array<Place, kDivertedMax> places_{};
  std::atomic<bool> any_{false};
  std::atomic<bool> too_many_{false};
};

Status membarrier(int command) {
  if (::syscall(SYS_membarrier, command, 0, 0) == 0) return {};
  return FailedCall{
      errno,
      "the store tracker needs the system call membarrier (its private expedited commands), which "
      "this kernel or this sandbox refuses; allow it, or choose another tracker",
      PAWL_ERROR_TRACKER_UNAVAILABLE};
}

// A thread that finds its line marked already leaves it at that, while its store may still wait in
// its processor.  When such a mark was taken, the store must arrive before the line is read: after
// this all have that any thread made before it could see its mark taken.
Status await_stores_of_other_threads() { return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

bool is_thread(pid_t thread) {
  return ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0 || errno != ESRCH;
}

}  // namespace

// What all threads share.  Changed with the lock held, but for what handlers divert.
class StoreRegistry {
 public:
  // The lock, and the thread is busy meanwhile.
  class Holder {
   public:
    Holder();
    ~Holder();
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
  };

  Status watch(const void* owner, std::uint64_t first, std::uint64_t end);
  void unwatch(const void* owner, std::uint64_t first, std::uint64_t end);
  // True when marks of other threads were taken.
  bool collect(const void* owner, std::uint64_t first, std::uint64_t end,
               std::vector<StoredLines>& stored);
  // Marks in the areas themselves.
  void add(const Pages& pages);
  // The calling thread's table gets room, or the thread gets a table.  False when there is none to
  // be had.
  bool make_room();

  void divert(const Pages& pages) noexcept { diverted_.add(pages); }
  std::uint32_t tables() const { return tables_used_; }

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    const void* owner = nullptr;
    WatchedArea* area = nullptr;
  };

  static void start_anew_in_child();
  void start_anew();
  void take_diverted();
  WatchedArea* area_of(std::uint64_t page);
  Range* first_behind(std::uint64_t page);
  Range* insert(const Range& range);
  void erase(Range* range);
  bool extend_left_neighbour(const void* owner, std::uint64_t first, std::uint64_t end,
                             Status& outcome);

  ThreadMarks* table_for_thread();
  ThreadMarks* adopt(pid_t thread);
  ThreadMarks* make_table(pid_t thread);

  static std::uint32_t entry_for(std::uint32_t table, std::uint32_t slot) {
    return table * ThreadMarks::kSlots + slot + 1;  // 0 is a slot in no list
  }
  // The table and the slot that an entry of a list stands for.
  struct Entry {
    ThreadMarks& table;
    std::uint32_t slot;
    std::uint32_t& link() { return table.link(slot); }
  };
  Entry entry(std::uint32_t listed) {
    return {*tables_[(listed - 1) / ThreadMarks::kSlots], (listed - 1) % ThreadMarks::kSlots};
  }
  void list_fresh();
  void take_or_list_fresh(const Range* range, const void* owner, std::uint64_t first,
                          std::uint64_t end, std::vector<StoredLines>& stored);
  void list(std::uint32_t table, std::uint32_t slot, std::uint64_t page);
  template <class IsTaken>
  void unlist(WatchedArea& area, IsTaken&& is_taken);
  void unlist_all_of(ThreadMarks& table);
  // Apart from collect(), most of which do without them and are then shorter.
  __attribute__((noinline)) void probe(const Range& range, std::uint64_t first, std::uint64_t end,
                                       std::vector<StoredLines>& stored);
  __attribute__((noinline)) void take(const Range& range, std::uint64_t first, std::uint64_t end,
                                      std::vector<StoredLines>& stored);
  void note_taken_of(const ThreadMarks& table);

  static ThreadMarks::Caller caller_of(const ThreadMarks& table) {
    return &table == marks_of_thread ? ThreadMarks::Caller::its_thread
                                     : ThreadMarks::Caller::other_thread;
  }
  static std::uint64_t take(ThreadMarks& table, std::uint32_t slot) {
    return table.take(slot, caller_of(table));
  }

  ForkSafeLock lock_;
  DivertedMarks diverted_;
  std::array<Range, kWatchedRangesMax> ranges_{};  // in order, disjoint
  std::size_t ranges_used_ = 0;
  std::array<ThreadMarks*, kTablesMax> tables_{};
  std::array<pid_t, kTablesMax> threads_{};  // the one that a table belongs, or belonged, to
  std::uint32_t tables_used_ = 0;
  std::uint32_t next_tried_ = 0;
  bool took_of_others_ = false;  // the collect in hand
  pid_t process_ = 0;
  ThreadMarks::Scratch scratch_{};
};

namespace {

// Never destroyed: other objects' destructors may still store.
constinit StoreRegistry registry;

}  // namespace

StoreRegistry::Holder::Holder() {
  PAWL_ASSERT(!is_busy.load(std::memory_order_relaxed));
  is_busy.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (registry.lock_.lock()) {
    marks_of_thread = nullptr;
    registry.start_anew();
  }
  if (registry.diverted_.any()) registry.take_diverted();
}

StoreRegistry::Holder::~Holder() {
  for (;;) {
    registry.lock_.unlock();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    is_busy.store(false, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // From here on handlers take the lock themselves; what they diverted before is not left behind.
    if (!registry.diverted_.any()) return;
    is_busy.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    registry.lock_.lock();
    registry.take_diverted();
  }
}

void StoreRegistry::take_diverted() {
  if (diverted_.take([&](const Pages& pages) { add(pages); })) return;
  for (std::size_t i = 0; i < ranges_used_; ++i)
    ranges_[i].area->add(ranges_[i].first, ranges_[i].end, kAllLines);
}

// Only the forking thread is there; others may have held the lock.  Areas are left behind, for
// nobody knows in which state; the tables of threads are only ever added to.
void StoreRegistry::start_anew_in_child() {
  marks_of_thread = nullptr;
  is_busy.store(false, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < registry.tables_used_; ++i)
    munmap(registry.tables_[i], sizeof(ThreadMarks));
  registry.start_anew();
  registry.lock_.unlock();
}

void StoreRegistry::start_anew() {
  StoreMarks::watched_.store(0, std::memory_order_relaxed);
  tables_used_ = 0;
  next_tried_ = 0;
  ranges_used_ = 0;
  new (&diverted_) DivertedMarks;
}

// Ranges.

StoreRegistry::Range* StoreRegistry::first_behind(std::uint64_t page) {
  return std::upper_bound(
      ranges_.data(), ranges_.data() + ranges_used_, page,
      [](std::uint64_t value, const Range& range) { return value < range.end; });
}

WatchedArea* StoreRegistry::area_of(std::uint64_t page) {
  Range* const range = first_behind(page);
  if (range == ranges_.data() + ranges_used_ || page < range->first) return nullptr;
  return range->area;
}

StoreRegistry::Range* StoreRegistry::insert(const Range& range) {
  PAWL_ASSERT(ranges_used_ < ranges_.size());
  Range* const at = first_behind(range.first);
  std::move_backward(at, ranges_.data() + ranges_used_, ranges_.data() + ranges_used_ + 1);
  *at = range;
  ++ranges_used_;
  StoreMarks::watched_.fetch_add(1);
  ++range.area->ranges;
  return at;
}

void StoreRegistry::erase(Range* range) {
  WatchedArea* const area = range->area;
  std::move(range + 1, ranges_.data() + ranges_used_, range);
  --ranges_used_;
  StoreMarks::watched_.fetch_sub(1);
  if (--area->ranges == 0) delete area;
}

bool StoreRegistry::extend_left_neighbour(const void* owner, std::uint64_t first, std::uint64_t end,
                                          Status& outcome) {
  Range* const behind = first_behind(first);
  if (behind == ranges_.data()) return false;
  Range& left = *(behind - 1);
  if (left.owner != owner || left.end != first || left.area->ranges != 1) return false;
  if (left.area->grow(end))
    left.end = end;
  else
    outcome = Status::no_memory("no memory to watch a mapping");
  return true;
}

Status StoreRegistry::watch(const void* owner, std::uint64_t first, std::uint64_t end) {
  PAWL_ASSERT(first < end);
  static const int registered = pthread_atfork(nullptr, nullptr, start_anew_in_child);
  (void)registered;
  PAWL_TRY(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
  const Holder holder;
  process_ = ::getpid();
  list_fresh();  // what was marked there before is dropped
  Status outcome;
  if (extend_left_neighbour(owner, first, end, outcome)) return outcome;
  if (ranges_used_ == ranges_.size())
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY, "too many ranges are watched; unmap some");
  auto* const area = new (std::nothrow) WatchedArea;
  if (area == nullptr || !area->allocate(first, end)) {
    delete area;
    return Status::no_memory("no memory to watch a mapping");
  }
  insert({first, end, owner, area});
  return {};
}

void StoreRegistry::unwatch(const void* owner, std::uint64_t first, std::uint64_t end) {
  const Holder holder;
  list_fresh();
  for (Range* range = first_behind(first);
       range < ranges_.data() + ranges_used_ && range->first < end;) {
    if (range->owner != owner) {
      ++range;
      continue;
    }
    const std::uint64_t low = std::max(first, range->first);
    const std::uint64_t high = std::min(end, range->end);
    unlist(*range->area, [&](Entry& listed, std::uint64_t page) {
      if (page < low || page >= high) return false;
      (void)take(listed.table, listed.slot);
      return true;
    });
    range->area->drop(low, high);
    const Range whole = *range;
    if (low == whole.first && high == whole.end) {
      erase(range);
    } else if (low == whole.first) {
      range->first = high;
    } else {
      range->end = low;
      // To go on watching memory that is about to become something else would be worse than to
      // stop.
      range = high < whole.end ? insert({high, whole.end, owner, whole.area}) : range + 1;
    }
  }
}

void StoreRegistry::add(const Pages& pages) {
  for (Range* range = first_behind(pages.first);
       range < ranges_.data() + ranges_used_ && range->first < pages.end; ++range)
    range->area->add(std::max(pages.first, range->first), std::min(pages.end, range->end),
                     pages.lines);
}

// Threads and their tables.

// One that has the same number is dead as well: a live one knows its table.
ThreadMarks* StoreRegistry::adopt(pid_t thread) {
  const auto namesake = std::find(threads_.begin(), threads_.begin() + tables_used_, thread);
  if (namesake != threads_.begin() + tables_used_) return tables_[namesake - threads_.begin()];
  for (std::uint32_t tried = 0; tried < std::min(kTablesTried, tables_used_); ++tried) {
    const std::uint32_t number = next_tried_++ % tables_used_;
    if (is_thread(threads_[number])) continue;
    threads_[number] = thread;
    return tables_[number];
  }
  return nullptr;
}

ThreadMarks* StoreRegistry::make_table(pid_t thread) {
  if (tables_used_ == kTablesMax) return nullptr;
  void* const memory = mmap(nullptr, sizeof(ThreadMarks), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const table = new (memory) ThreadMarks(tables_used_);
  tables_[tables_used_] = table;
  threads_[tables_used_] = thread;
  ++tables_used_;
  return table;
}

// Null in a vfork child: what its parent's thread then used would be taken for a dead thread's.
ThreadMarks* StoreRegistry::table_for_thread() {
  if (::getpid() != process_) return nullptr;
  const auto thread = static_cast<pid_t>(::syscall(SYS_gettid));
  ThreadMarks* const adopted = adopt(thread);
  return adopted != nullptr ? adopted : make_table(thread);
}

bool StoreRegistry::make_room() {
  ThreadMarks* const table = marks_of_thread;
  if (table == nullptr) {
    marks_of_thread = table_for_thread();
    return marks_of_thread != nullptr;
  }
  // Handlers come to the lock, and divert.
  marks_of_thread = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  unlist_all_of(*table);
  table->make_room(scratch_,
                   [&](std::uint64_t page, std::uint64_t lines) { add({page, page + 1, lines}); });
  std::atomic_signal_fence(std::memory_order_seq_cst);
  marks_of_thread = table;
  return true;
}

// Lists.

void StoreRegistry::list(std::uint32_t table, std::uint32_t slot, std::uint64_t page) {
  WatchedArea* const area = area_of(page);
  if (area == nullptr) {
    (void)take(*tables_[table], slot);
    return;
  }
  std::uint32_t& link = tables_[table]->link(slot);
  if (link != 0) return;
  link = area->listed;
  area->listed = entry_for(table, slot);
}

// Every fresh page comes into the list of its area.
void StoreRegistry::list_fresh() {
  for (std::uint32_t table = 0; table < tables_used_; ++table)
    tables_[table]->take_fresh(caller_of(*tables_[table]), [&](std::uint32_t slot) {
      list(table, slot, tables_[table]->page_in(slot));
    });
}

// Takes those out of the list for which is_taken(entry, page) is true.
template <class IsTaken>
void StoreRegistry::unlist(WatchedArea& area, IsTaken&& is_taken) {
  for (std::uint32_t* from = &area.listed; *from != WatchedArea::kListEnd;) {
    Entry listed = entry(*from);
    if (is_taken(listed, listed.table.page_in(listed.slot))) {
      *from = listed.link();
      listed.link() = 0;
    } else {
      from = &listed.link();
    }
  }
}

void StoreRegistry::unlist_all_of(ThreadMarks& table) {
  for (std::uint32_t slot = 0; slot < ThreadMarks::kSlots; ++slot) {
    if (table.link(slot) == 0) continue;
    WatchedArea* const area = area_of(table.page_in(slot));
    PAWL_ASSERT(area != nullptr);
    unlist(*area, [&](const Entry& listed, std::uint64_t) { return &listed.table == &table; });
  }
}

// Collecting.

void StoreRegistry::note_taken_of(const ThreadMarks& table) {
  took_of_others_ = took_of_others_ || &table != marks_of_thread;
}

bool StoreRegistry::collect(const void* owner, std::uint64_t first, std::uint64_t end,
                            std::vector<StoredLines>& stored) {
  const Holder holder;
  took_of_others_ = false;
  const bool probes = (end - first) * std::max(tables_used_, std::uint32_t{1}) <= kProbesMax;
  Range* range = first_behind(first);
  if (!probes) take_or_list_fresh(range, owner, first, end, stored);
  for (; range < ranges_.data() + ranges_used_ && range->first < end; ++range) {
    if (range->owner != owner || (!probes && !range->area->has_marks())) continue;
    const std::uint64_t low = std::max(first, range->first);
    const std::uint64_t high = std::min(end, range->end);
    if (probes)
      probe(*range, low, high, stored);
    else
      take(*range, low, high, stored);
  }
  return took_of_others_;
}

// list_fresh(), but that pages of the first range that is asked for, as most are, are taken at
// once; as long as there is a place for them without taking memory.
void StoreRegistry::take_or_list_fresh(const Range* range, const void* owner, std::uint64_t first,
                                       std::uint64_t end, std::vector<StoredLines>& stored) {
  const bool is_owned = range < ranges_.data() + ranges_used_ && range->owner == owner;
  const std::uint64_t low = is_owned ? std::max(first, range->first) : 0;
  const std::uint64_t high = is_owned ? std::min(end, range->end) : 0;
  for (std::uint32_t number = 0; number < tables_used_; ++number) {
    ThreadMarks& table = *tables_[number];
    const ThreadMarks::Caller caller = caller_of(table);
    table.take_fresh(caller, [&](std::uint32_t slot) {
      const std::uint64_t page = table.page_in(slot);
      if (page < low || page >= high || table.link(slot) != 0 || stored.size() == stored.capacity())
        return list(number, slot, page);
      const std::uint64_t lines = table.take(slot, caller);
      if (lines == 0) return;
      stored.push_back({page, lines});
      if (caller == ThreadMarks::Caller::other_thread) took_of_others_ = true;
    });
  }
}

// There is a place for what is taken before it is taken.
void StoreRegistry::probe(const Range& range, std::uint64_t first, std::uint64_t end,
                          std::vector<StoredLines>& stored) {
  for (std::uint64_t page = first; page < end; ++page) {
    stored.push_back({page, 0});
    std::uint64_t lines = range.area->take(page);
    for (std::uint32_t table = 0; table < tables_used_; ++table) {
      const std::uint64_t taken = tables_[table]->take_page(page, caller_of(*tables_[table]));
      if (taken != 0) note_taken_of(*tables_[table]);
      lines |= taken;
    }
    if (lines == 0)
      stored.pop_back();
    else
      stored.back().lines = lines;
  }
}

void StoreRegistry::take(const Range& range, std::uint64_t first, std::uint64_t end,
                         std::vector<StoredLines>& stored) {
  unlist(*range.area, [&](const Entry& listed, std::uint64_t page) {
    if (page < first || page >= end) return false;
    stored.push_back({page, 0});
    const std::uint64_t lines = take(listed.table, listed.slot);
    if (lines == 0) {
      stored.pop_back();
    } else {
      stored.back().lines = lines;
      note_taken_of(listed.table);
    }
    return true;
  });
  PageRun run;
  for (std::uint64_t from = first; range.area->next_run(from, end, run); from = run.end()) {
    for (std::uint64_t page = run.first; page < run.end(); ++page) {
      stored.push_back({page, 0});
      stored.back().lines = range.area->take(page);
    }
  }
}

// Marking.
//
// A thread that may be cancelled at any instruction marks as well, and in C++ only a function
// without anything to clean up lets that pass.  So the functions that mark have no objects: what
// needs any is called with handlers, and cancellation, held back.

namespace {

class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = error_number_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int error_number_ = errno;
};

__attribute__((noinline)) void add_under_lock(const Pages& pages) noexcept {
  const KeptErrno kept;
  const StoreRegistry::Holder holder;
  registry.add(pages);
}

// False when the thread's table has room now, and nothing was marked.
__attribute__((noinline)) bool add_unless_there_is_room(const Pages& pages) noexcept {
  const KeptErrno kept;
  const StoreRegistry::Holder holder;
  if (registry.make_room()) return false;
  registry.add(pages);
  return true;
}

void mark_run(const Pages& pages) noexcept {
  if (is_busy.load(std::memory_order_relaxed)) return registry.divert(pages);
  const KernelSignals before = hold_back_handlers();
  add_under_lock(pages);
  change_signal_mask(SIG_SETMASK, before);
}

__attribute__((noinline)) void mark_page(std::uint64_t page, std::uint64_t lines) noexcept {
  for (;;) {
    ThreadMarks* const table = marks_of_thread;
    if (table != nullptr && table->add(page, lines)) return;
    const Pages pages{page, page + 1, lines};
    if (is_busy.load(std::memory_order_relaxed)) return registry.divert(pages);
    const KernelSignals before = hold_back_handlers();
    const bool is_marked = add_unless_there_is_room(pages);
    change_signal_mask(SIG_SETMASK, before);
    if (is_marked) return;
  }
}

__attribute__((noinline)) void mark_slowly(const void* address, std::size_t length) noexcept {
  if (length == 0) return;
  const auto given = reinterpret_cast<std::uint64_t>(address);
  std::uint64_t last = 0;
  if (__builtin_add_overflow(given, length - 1, &last)) last = ~std::uint64_t{0};
  const std::uint64_t first = std::max(given, kStoreRegionFirst);
  last = std::min(last, kStoreRegionEnd - 1);
  if (first > last) return;
  const std::uint64_t first_page = first / kPageBytes;
  const std::uint64_t last_page = last / kPageBytes;
  if (first_page == last_page) return mark_page(first_page, lines_between(first, last));
  mark_page(first_page, lines_between(first, kPageBytes - 1));
  if (last_page - first_page >= kRunPagesMin)
    mark_run({first_page + 1, last_page, kAllLines});
  else
    for (std::uint64_t page = first_page + 1; page < last_page; ++page) mark_page(page, kAllLines);
  mark_page(last_page, lines_between(0, last));
}

}  // namespace

constinit std::atomic<std::size_t> StoreMarks::watched_{0};
constinit std::atomic<bool> StoreMarks::called_early_{false};

// What finds its lines marked already returns at once, and keeps nothing for later.
void StoreMarks::mark(const void* address, std::size_t length) noexcept {
  const auto first = reinterpret_cast<std::uint64_t>(address);
  ThreadMarks* const table = marks_of_thread;
  const bool is_in_one_page = length - 1 < kPageBytes - first % kPageBytes;  // and not empty
  if (table == nullptr || !is_in_one_page || !in_store_region(address))
    return mark_slowly(address, length);
  const std::uint64_t page = first / kPageBytes;
  const std::uint64_t lines = lines_between(first, first + length - 1);
  if (!table->mark(page, lines)) mark_page(page, lines);
}

Status StoreMarks::watch(const void* owner, std::uint64_t first, std::uint64_t end) {
  return registry.watch(owner, first, end);
}
void StoreMarks::unwatch(const void* owner, std::uint64_t first, std::uint64_t end) {
  registry.unwatch(owner, first, end);
}
Status StoreMarks::collect(const void* owner, std::uint64_t first, std::uint64_t end,
                           std::vector<StoredLines>& stored) {
  return registry.collect(owner, first, end, stored) ? await_stores_of_other_threads() : Status{};
}
std::size_t StoreMarks::tables() {
  const StoreRegistry::Holder holder;
  return registry.tables();
}

}  // namespace pawl
