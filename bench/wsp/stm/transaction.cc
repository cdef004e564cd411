#include "stm/transaction.h"

#include <sched.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "medium/status.h"
#include "stm/region.h"
#include "stm/threads.h"

namespace pawl::bench::stm {
namespace {

constexpr std::uint64_t kWordBytes = 8;
// One of those that meet goes on, so that many in a row are no bad luck.
constexpr unsigned kAttemptsMax = 10'000'000;
constexpr unsigned kYieldsMax = 64;

// What _ITM_beginTransaction tells its caller.
constexpr std::uint32_t kRunInstrumented = 1;
constexpr std::uint32_t kRestoreLiveVariables = 8;
constexpr std::uint32_t kAborted = 16;

std::uint64_t load(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(address))
      .load(std::memory_order_acquire);
}
void store(std::uint64_t address, std::uint64_t value) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(address))
      .store(value, std::memory_order_release);
}

// Of `count` bytes from the one at `offset` of a word on.
std::uint64_t mask_of(std::size_t offset, std::size_t count) {
  const std::uint64_t low =
      count == kWordBytes ? ~std::uint64_t{0} : (std::uint64_t{1} << count * 8) - 1;
  return low << offset * 8;
}

// Calls each(word's address, offset in it, count) for the words of [at, at + count).
template <class Each>
void for_words(const void* at, std::size_t count, Each each) {
  auto address = reinterpret_cast<std::uint64_t>(at);
  while (count > 0) {
    const std::size_t offset = address % kWordBytes;
    const std::size_t piece = std::min(count, kWordBytes - offset);
    each(address - offset, offset, piece);
    address += piece;
    count -= piece;
  }
}

}  // namespace

Versions& versions() {
  static Versions the_versions;
  return the_versions;
}

void refuse(const char* what) {
  std::fprintf(stderr, "stm: %s\n", what);
  std::abort();
}

Transaction& Transaction::current() {
  thread_local Transaction transaction;
  return transaction;
}

Transaction::Transaction() : index_(take_thread_index()) {}
Transaction::~Transaction() { give_back_thread_index(index_); }

// ---------------------------------------------------------------------------------- begin and end

bool Transaction::begin(const Jump& from) {
  if (depth_++ > 0) return false;
  from_ = from;
  attempts_ = 0;
  ++number_;
  begin_attempt();
  return true;
}

void Transaction::begin_attempt() {
  depth_ = 1;
  begin_being_active(index_, versions().now());
  // After others know of it.
  began_ = versions().now();
}

void Transaction::forget() {
  reads_.clear();
  writes_.clear();
  taken_.clear();
  kept_.clear();
  allocated_.clear();
  released_.clear();
}

void Transaction::roll_back() {
  for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept)
    std::memcpy(kept->at, kept->bytes.data(), kept->bytes.size());
  for (void* const block : allocated_) std::free(block);
  forget();
  end_being_active(index_);
}

void Transaction::retry() {
  roll_back();
  if (++attempts_ > kAttemptsMax) refuse("a transaction does not come to its end");
  // Threads that met part again: each waits differently long.
  for (unsigned turn = (attempts_ + static_cast<unsigned>(index_)) % kYieldsMax; turn > 0; --turn)
    ::sched_yield();
  begin_attempt();
  pawl_stm_resume(&from_, kRunInstrumented | kRestoreLiveVariables);
}

void Transaction::cancel() {
  if (depth_ > 1) refuse("an inner transaction cannot be cancelled by itself");
  roll_back();
  depth_ = 0;
  pawl_stm_resume(&from_, kAborted | kRestoreLiveVariables);
}

void Transaction::commit() {
  PAWL_ASSERT(depth_ > 0);
  if (depth_ > 1) {
    --depth_;
    return;
  }
  std::uint64_t time = began_;
  if (!writes_.empty()) {
    if (!take_written()) retry();
    time = versions().next();
    // When nobody committed since it began, nothing that it read has changed.
    if (time != began_ + 1 && !reads_hold()) {
      give_back(0);
      retry();
    }
    put_in_place(time);
    give_back(time);
  }
  depth_ = 0;
  end_being_active(index_);
  if (!writes_.empty() || !released_.empty()) wait_for_older(time);
  for (void* const block : released_) std::free(block);
  forget();
}

// False: another commit has one of them.
bool Transaction::take_written() {
  for (const WrittenWord& word : writes_.words()) {
    Version& version = versions().of(word.address);
    std::uint64_t before = version.load(std::memory_order_acquire);
    const bool is_own = (before & kTaken) != 0 &&
                        std::any_of(taken_.begin(), taken_.end(),
                                    [&](const Taken& taken) { return taken.version == &version; });
    if (is_own) continue;
    if ((before & kTaken) != 0 ||
        !version.compare_exchange_strong(before, before | kTaken, std::memory_order_acq_rel)) {
      give_back(0);
      return false;
    }
    taken_.push_back({&version, before});
  }
  return true;
}

// Of this time; 0: as they were.
void Transaction::give_back(std::uint64_t time) {
  for (const Taken& taken : taken_)
    taken.version->store(time == 0 ? taken.before : time << 1, std::memory_order_release);
  taken_.clear();
}

bool Transaction::reads_hold() const {
  return std::all_of(reads_.begin(), reads_.end(), [this](const Version* read) {
    std::uint64_t version = read->load(std::memory_order_acquire);
    if ((version & kTaken) != 0) {
      const auto own = std::find_if(taken_.begin(), taken_.end(),
                                    [&](const Taken& taken) { return taken.version == read; });
      if (own == taken_.end()) return false;
      version = own->before;
    }
    return version >> 1 <= began_;
  });
}

// ------------------------------------------------------------------------------------- durability

// Words that were stored in part are whole from here on: nobody else changes what it has taken.
void Transaction::collect_log() {
  const Region* const region = the_region();
  logged_.clear();
  lines_.clear();
  if (region == nullptr) return;
  const auto begin = reinterpret_cast<std::uint64_t>(region->begin());
  for (const WrittenWord& word : writes_.words()) {
    if (!region->holds(word.address)) continue;
    const std::uint64_t value = word.mask == ~std::uint64_t{0}
                                    ? word.value
                                    : (load(word.address) & ~word.mask) | word.value;
    logged_.push_back({word.address - begin, value});
    lines_.push_back(word.address / kLineBytes * kLineBytes);
  }
  std::sort(lines_.begin(), lines_.end());
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
}

// Until the record is gone the stripes stay taken: else it could be replayed over what another
// transaction, whose record is gone, has stored there since.
void Transaction::put_in_place(std::uint64_t time) {
  collect_log();
  const bool is_durable = !logged_.empty();
  if (logged_.size() > kLoggedWordsMax)
    refuse("a transaction stores to too many words for its log");
  Region* const region = the_region();
  if (is_durable) {
    RedoLog log(region->log(index_), region->memory());
    log.commit(time, logged_);
    ++counts_.fences;
    counts_.lines_flushed +=
        1 + (logged_.size() * sizeof(LoggedWord) + kLineBytes - 1) / kLineBytes;
  }
  for (const WrittenWord& word : writes_.words()) {
    const std::uint64_t rest = word.mask == ~std::uint64_t{0} ? 0 : load(word.address) & ~word.mask;
    store(word.address, rest | word.value);
  }
  if (!is_durable) return;
  flush_written();
  RedoLog(region->log(index_), region->memory()).empty();
  ++counts_.fences;
  ++counts_.lines_flushed;
}

void Transaction::flush_written() {
  PersistentMemory& memory = the_region()->memory();
  for (const std::uint64_t line : lines_) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address
    memory.flush(reinterpret_cast<const std::byte*>(line), kLineBytes);
  }
  memory.fence();
  ++counts_.fences;
  counts_.lines_flushed += lines_.size();
}

// ------------------------------------------------------------------------------------------ access

// Of functions that were called since it began: gone when it begins anew, and in use while it
// commits.
bool Transaction::is_on_own_stack(std::uint64_t address) const {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  return address >= here && address < from_.stack;
}

std::uint64_t Transaction::read_memory(std::uint64_t address) {
  Version& version = versions().of(address);
  const std::uint64_t before = version.load(std::memory_order_acquire);
  const std::uint64_t value = load(address);
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t after = version.load(std::memory_order_relaxed);
  if ((before & kTaken) != 0 || before != after || before >> 1 > began_) retry();
  reads_.push_back(&version);
  return value;
}

std::uint64_t Transaction::read_word(std::uint64_t address) {
  if (writes_.empty()) return read_memory(address);
  const WrittenWord* const written = writes_.find(address);
  if (written == nullptr) return read_memory(address);
  if (written->mask == ~std::uint64_t{0}) return written->value;
  const std::uint64_t value = written->value;
  const std::uint64_t mask = written->mask;
  return (read_memory(address) & ~mask) | value;
}

void Transaction::read(const void* at, void* into, std::size_t count) {
  if (is_on_own_stack(reinterpret_cast<std::uint64_t>(at))) {
    std::memcpy(into, at, count);
    return;
  }
  auto* to = static_cast<std::byte*>(into);
  for_words(at, count, [&](std::uint64_t word, std::size_t offset, std::size_t piece) {
    const std::uint64_t value = read_word(word) >> offset * 8;
    std::memcpy(to, &value, piece);
    to += piece;
  });
}

void Transaction::write(void* at, const void* from, std::size_t count) {
  if (is_on_own_stack(reinterpret_cast<std::uint64_t>(at))) {
    std::memcpy(at, from, count);
    return;
  }
  const auto* bytes = static_cast<const std::byte*>(from);
  for_words(at, count, [&](std::uint64_t word, std::size_t offset, std::size_t piece) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes, piece);
    writes_.put(word, value << offset * 8, mask_of(offset, piece));
    bytes += piece;
  });
}

void Transaction::keep(const void* at, std::size_t count) {
  if (is_on_own_stack(reinterpret_cast<std::uint64_t>(at))) return;
  const auto* const bytes = static_cast<const std::byte*>(at);
  kept_.push_back({const_cast<std::byte*>(bytes), {bytes, bytes + count}});
}

void* Transaction::allocate(std::size_t bytes, bool is_zeroed) {
  void* const block = is_zeroed ? std::calloc(1, bytes) : std::malloc(bytes);
  if (is_active() && block != nullptr) allocated_.push_back(block);
  return block;
}

void Transaction::release(void* block) {
  if (!is_active()) return std::free(block);
  if (block != nullptr) released_.push_back(block);
}

}  // namespace pawl::bench::stm
