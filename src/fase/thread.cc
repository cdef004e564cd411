#include "fase/thread.h"

#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <set>

#include "fase/program.h"
#include "fase/recovered_fase.h"
#include "medium/fork_safe_lock.h"
#include "medium/law.h"
#include "medium/quiet_thread.h"

namespace pawl::fase {

constinit thread_local Thread* the_thread = nullptr;
constinit thread_local Thread* interrupted_thread = nullptr;

namespace {

// Longer ranges are flushed at once: most of their lines are stored to once.
constexpr std::uint64_t kLinesAtOnceMin = 32;

std::atomic<bool> is_child{false};

struct Threads {
  // What a child finds half changed it leaves behind.
  void lock() {
    if (fork_safe.lock()) new (&all) std::set<Thread*>;
  }
  void unlock() { fork_safe.unlock(); }

  ForkSafeLock fork_safe;
  std::set<Thread*> all;
  Counts of_ended;
  pthread_key_t key{};
};

void end_of_thread(void* thread);

// Never destroyed: threads may outlive main().
Threads& threads() {
  static auto* const made = [] {
    auto* const fresh = new Threads;
    PAWL_ASSERT(::pthread_key_create(&fresh->key, end_of_thread) == 0);
    return fresh;
  }();
  return *made;
}

// A signal handler may take locks where it interrupts no section: it must not come in between.
void end_of_thread(void* thread) {
  const QuietSection quiet;
  auto* const of = static_cast<Thread*>(thread);
  // It ends with locks held: its FASE stays as it is, and so does its log.
  if (of->is_in_fase()) return;
  Threads& all = threads();
  // The file may be closed meanwhile, and then its log is given back there.
  const std::lock_guard lock(all);
  of->detach();
  all.of_ended.add(of->counts());
  all.all.erase(of);
  the_thread = nullptr;
  delete of;
}

}  // namespace

bool is_forked_child() {
  const std::uint64_t opener = memory_of_opener.load(std::memory_order_relaxed);
  return is_child.load(std::memory_order_relaxed) || (opener != 0 && opener != number_of_memory());
}
void become_forked_child() {
  is_child = true;
  the_open_file = nullptr;
  Thread::forget_file_of_current();
}

void Counts::add(const Counts& other) {
  add(fases, other.fases.load(std::memory_order_relaxed));
  add(fases_armed, other.fases_armed.load(std::memory_order_relaxed));
  add(frames, other.frames.load(std::memory_order_relaxed));
  add(fences, other.fences.load(std::memory_order_relaxed));
  add(lines_flushed, other.lines_flushed.load(std::memory_order_relaxed));
  add(bytes_logged, other.bytes_logged.load(std::memory_order_relaxed));
}

void sum_counts(Counts& sum) {
  Threads& all = threads();
  const std::lock_guard lock(all);
  sum.add(all.of_ended);
  for (const Thread* thread : all.all) sum.add(thread->counts());
}

void begin_counting() {
  Threads& all = threads();
  const std::lock_guard lock(all);
  all.of_ended.clear();
  for (Thread* thread : all.all) thread->counts().clear();
}

void Counts::clear() {
  for (auto* count : {&fases, &fases_armed, &frames, &fences, &lines_flushed, &bytes_logged})
    count->store(0, std::memory_order_relaxed);
}

Status detach_all_threads() {
  Threads& all = threads();
  const std::lock_guard lock(all);
  for (const Thread* thread : all.all) {
    if (thread->is_in_fase())
      return Status::failure(EBUSY, PAWL_ERROR_STILL_OPEN,
                             "a thread is in a failure-atomic section; the file can be closed when "
                             "all locks are released");
  }
  for (Thread* thread : all.all) thread->detach();
  return {};
}

// ------------------------------------------------------------------------------------------ thread

const pawl_fase_region& Site::described() const {
  PAWL_ASSERT(region < function->region_count);
  return function->regions[region];
}

std::span<const std::byte> Site::bytes() const {
  const std::size_t count = described().live_in_bytes;
  PAWL_ASSERT(count <= PAWL_FASE_LIVE_IN_BYTES_MAX);
  return {static_cast<const std::byte*>(live_ins), count};
}

Thread& Thread::make_current() {
  // As in end_of_thread().
  const QuietSection quiet;
  if (the_thread != nullptr) return *the_thread;
  auto* const made = new Thread;
  Threads& all = threads();
  {
    const std::lock_guard lock(all);
    all.all.insert(made);
  }
  ::pthread_setspecific(all.key, made);
  the_thread = made;
  return *made;
}

void Thread::attach() {
  if (log_) return;
  if (recovered_ == nullptr) rehearsal_ = Rehearsal::make();
  file_ = file();
  PAWL_ASSERT(file_ != nullptr);
  const auto taken = file_->take_log();
  if (!taken.ok()) end_program(taken.status().text());
  log_index_ = taken.value();
  log_.emplace(file_->log(log_index_), file_->memory(), file_->next_number(log_index_),
               file_->end_place(log_index_));
  if (file_->undo_dependences() != nullptr)
    undo_.emplace(file_->undo_area(log_index_), file_->memory());
}

void Thread::detach() {
  if (file_ == nullptr) return;
  persist_stored();
  if (log_) {
    forget_end();
    file_->give_back_log(log_index_, log_->next_number(), log_->end_place());
  }
  log_.reset();
  undo_.reset();
  rehearsal_.reset();
  log_index_ = File::kNoLog;
  file_ = nullptr;
}

void Thread::forget_file_of_current() {
  Thread* const thread = the_thread == &of_handlers() ? interrupted_thread : the_thread;
  if (thread != nullptr) thread->forget_file();
}

void Thread::forget_file() {
  log_.reset();
  undo_.reset();
  rehearsal_.reset();
  file_ = nullptr;
  is_armed_ = false;
  has_unfenced_ = false;
  forget_blocks(blocks_.size());
  freed_by_end_count_ = 0;
  published_frees_.clear();
  put_off_.take([](std::uint64_t, ReleaseLock) {});
  lines_.take([](std::uint64_t) {});
}

// The text goes to standard error: who called may not look at the last error.
void Thread::end_program(const std::string& why) const {
  std::fprintf(stderr, "pawl: %s\n", why.c_str());
  std::abort();
}

// ------------------------------------------------------------------------------------- durability

void Thread::count_flushed(std::uint64_t lines) {
  if (file()->flushes()) Counts::add(counts_.lines_flushed, lines);
}

void Thread::flush(std::uint64_t at, std::size_t count) {
  if (!file()->flushes()) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the file
  file()->memory().flush(reinterpret_cast<const std::byte*>(at), count);
  const std::uint64_t lines = (at + count - 1) / kLineBytes - at / kLineBytes + 1;
  count_flushed(lines);
  has_unfenced_ = true;
}

void Thread::flush_stored() {
  lines_.take([this](std::uint64_t line) { flush(line, kLineBytes); });
}

void Thread::fence() {
  if (!file()->flushes()) {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // to the compiler a fence all the same
    return forget_unfenced();
  }
  file()->memory().fence();
  Counts::add(counts_.fences, 1);
  forget_unfenced();
}

void Thread::persist_unfenced() {
  flush_stored();
  fence();
}

void Thread::persist(const void* at, std::size_t count) {
  if (is_of_handlers_) return persist_in_handler(at, count);
  if (count > 0) flush(reinterpret_cast<std::uint64_t>(at), count);
  fence();
}

void Thread::persist_in_handler(const void* at, std::size_t count) const {
  if (!file()->flushes()) return;
  if (count > 0) file()->memory().flush(static_cast<const std::byte*>(at), count);
  file()->memory().fence();
}

void Thread::stored(const void* at, std::size_t count) {
  if (!is_in_window(at) || count == 0 || file() == nullptr) return;
  if (file()->is_unprotected()) return;
  // Of undo no FASE has frames.
  if (is_in_fase() && needs_frame_ && !undo_ &&
      !is_own_block(reinterpret_cast<std::uint64_t>(at))) {
    end_program(
        "a store into persistent memory came before the frame that would repeat it after a crash: "
        "behind each lock that is taken there must be a cut before the next store");
  }
  stored_unchecked(at, count);
}

void Thread::stored_unchecked(const void* at, std::size_t count) {
  file()->memory().tell_stored(at, count);
  if (is_of_handlers_) return persist_in_handler(at, count);
  if (rehearsal_ != nullptr) [[unlikely]]
    rehearsal_->stored(at, count);
  if (file_ == nullptr) file_ = file();
  if (!file_->flushes()) return;
  const auto address = reinterpret_cast<std::uint64_t>(at);
  const std::uint64_t first = address / kLineBytes;
  const std::uint64_t lines = (address + count - 1) / kLineBytes - first + 1;
  if (lines >= kLinesAtOnceMin) return flush(address, count);
  for (std::uint64_t line = first; line < first + lines; ++line) {
    if (lines_.add(line * kLineBytes)) continue;
    flush_stored();
    lines_.add(line * kLineBytes);
  }
}

// ------------------------------------------------------------------------------------------ frames

FrameName Thread::put(const Frame& frame) {
  const FrameName name = log_->write(frame);
  const std::size_t lines = log_->lines_of(frame);
  Counts::add(counts_.frames, 1);
  count_flushed(lines);
  Counts::add(counts_.bytes_logged, lines * kLineBytes);
  return name;
}

void Thread::write_frame(const Site& site, std::uint32_t entries) {
  if (depth_ >= kDepthMax) {
    end_program("calls in a failure-atomic section go deeper than " + std::to_string(kDepthMax));
  }
  const Program& program = Program::own();
  log_entries(entries);
  flush_freed_by_end();
  std::array<std::uint8_t, kDepthMax> places{};
  std::uint64_t caller = 0;
  for (std::uint32_t depth = 0; depth < depth_; ++depth) {
    Level& level = levels_[depth];
    if (level.name.number == 0) {
      level.name = put({.function = program.number_of(level.function),
                        .region = level.region,
                        .after_call = true,
                        .depth = depth,
                        .caller = caller,
                        .live_ins = {level.live_ins.data(), level.live_in_bytes}});
    }
    caller = level.name.number;
    places[depth] = level.name.place;
  }
  const FrameName name = put({.function = program.number_of(site.function),
                              .region = site.region,
                              .depth = depth_,
                              .list = list_,
                              .entries = entries,
                              .caller = caller,
                              .locks = locks(),
                              .live_ins = site.bytes()});
  // The list that is begun after this frame is named after it.
  if (list_ == 0) list_ = name.number;
  places[depth_] = name.place;
  // Rule 4.
  if (is_broken(Law::frame_before_store)) {
    has_unfenced_ = true;
  } else {
    fence();
  }
  log_->keep({places.data(), depth_ + 1});
  last_frame_depth_ = depth_;
  locks_in_frame_ = lock_count_;
  needs_frame_ = false;
}

void Thread::log_frame(const Site& site) {
  attach();
  // Rule 3.
  if (!is_broken(Law::outputs_before_frame)) persist_stored();
  write_frame(site, blocks_.size());
  if (rehearsal_ != nullptr) [[unlikely]]
    rehearsal_->begin(site);
  if (is_armed_) return;
  is_armed_ = true;
  Counts::add(counts_.fases_armed, 1);
}

void Thread::cut(const Site& site) {
  if (file() == nullptr || file()->is_unprotected()) return;
  reached(EventKind::cut, 0, &site);
  // Others may find what was allocated when a lock is released that was put off; and what is freed
  // in a long FASE can be used again before it ends, for it will not be taken back.
  const bool is_long = blocks_.size() > kBlocksMax / 2;
  // A section that has no frame never was: what it has freed must not be free.
  if (is_long && !is_armed_) log_frame(site);
  if (!put_off_.empty() || is_long) publish_blocks(blocks_.size());
  log_frame(site);
  release_what_was_put_off();
  give_back_published();
}

void Thread::call(const Site& site) {
  log_what_was_put_off();
  reached(EventKind::call, 0, &site);
  if (depth_ < kDepthMax) {
    Level& level = levels_[depth_];
    level.function = site.function;
    level.region = site.region;
    level.name = {};
    const auto bytes = site.bytes();
    level.live_in_bytes = static_cast<std::uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), level.live_ins.begin());
  }
  ++depth_;
}

void Thread::call_returned() {
  log_what_was_put_off();
  reached(EventKind::function_return, 0, nullptr);
  if (depth_ == 0) {
    // The FASE began in what was called, and nothing says where its caller goes on.
    if (is_armed_)
      refuse(nullptr, 0, "a return from the function that took the first lock, with locks held",
             false);
    return;
  }
  --depth_;
  // Of what the frame's region read nothing is known here.
  if (last_frame_depth_ > depth_) needs_frame_ = true;
}

void Thread::refuse(const pawl_fase_function* function, std::uint32_t line, const char* what,
                    bool even_unarmed) {
  if (!is_armed_ && !even_unarmed) return;
  tell_refusal(function, line, what);
  // Nothing stands on the stack here that would have to be destroyed.
  if (recovered_ != nullptr) recovered_->leave();
}

void Thread::tell_refusal(const pawl_fase_function* function, std::uint32_t line,
                          const char* what) {
  std::string text;
  if (function != nullptr) {
    text = std::string(function->source) + ":" + std::to_string(line) + ": in " + function->name +
           ": ";
  }
  text += std::string(what) + " in a failure-atomic section cannot be repeated after a crash";
  if (recovered_ != nullptr) {
    recovered_->give_up(
        Status::failure(ENOTRECOVERABLE, PAWL_ERROR_SECTIONS_UNFINISHED, std::move(text)));
    return;
  }
  if (is_refused_) return;
  is_refused_ = true;
  std::fprintf(stderr, "pawl: %s; the program ends when the section does\n", text.c_str());
}

// ------------------------------------------------------------------------------------------ the
// end

void Thread::end_in_log() {
  const FrameName name = put({.locks = {ending_.data(), ending_count_}});
  fence();
  log_->keep({&name.place, 1});
}

void Thread::end_fase() {
  if (is_armed_) {
    publish_with_end();
  } else {
    publish_blocks(blocks_.size());
  }
  // Rule 3; and to release a lock is to show others what was stored.
  if (!is_broken(Law::outputs_before_frame)) persist_stored();
  if (is_armed_) end_in_log();
  has_ended_in_log_ = is_armed_;
  is_armed_ = false;
  needs_frame_ = true;
  list_ = 0;
  if (rehearsal_ != nullptr) rehearsal_->forget();
  release_what_was_put_off();
  give_back_published();
  if (recovered_ == nullptr) return;
  complete_end();
  recovered_->leave();
}

// ---------------------------------------------------------------------------------------- recovery

void Thread::adopt(File& file, std::uint32_t log, const FoundLog& found, RecoveredFase& fase) {
  const std::span<const FoundFrame> chain = found.chain;
  const FoundFrame& innermost = chain.back();
  const Program& program = Program::own();
  file_ = &file;
  recovered_ = &fase;
  log_index_ = log;
  log_.emplace(file.log(log), file.memory(), found.next_number);
  std::array<std::uint8_t, kDepthMax> places{};
  for (std::size_t depth = 0; depth < chain.size(); ++depth) {
    const FoundFrame& frame = chain[depth];
    places[depth] = frame.name.place;
    if (depth + 1 == chain.size()) break;
    Level& level = levels_[depth];
    level.function = program.function(frame.function);
    level.region = frame.region;
    level.name = frame.name;
    level.live_in_bytes = level.function->regions[frame.region].live_in_bytes;
    std::copy_n(frame.live_ins.begin(), level.live_in_bytes, level.live_ins.begin());
  }
  log_->keep({places.data(), chain.size()});
  std::copy(innermost.locks.begin(), innermost.locks.end(), locks_.begin());
  lock_count_ = static_cast<std::uint32_t>(innermost.locks.size());
  locks_in_frame_ = lock_count_;
  depth_ = innermost.depth;
  last_frame_depth_ = depth_;
  list_ = innermost.list;
  for (std::uint32_t i = 0; i < innermost.entries; ++i) blocks_.add(file.log(log).blocks[i].block);
  entries_in_log_ = innermost.entries;
  // Its own end takes the place of the one that freed them.
  std::copy(found.freed.begin(), found.freed.end(), freed_by_end_.begin());
  freed_by_end_count_ = static_cast<std::uint32_t>(found.freed.size());
  is_armed_ = true;
  needs_frame_ = false;
}

Site Thread::return_in_recovery() {
  PAWL_ASSERT(depth_ > 0);
  --depth_;
  needs_frame_ = true;
  const Level& level = levels_[depth_];
  return {level.function, level.region, level.live_ins.data()};
}

}  // namespace pawl::fase
