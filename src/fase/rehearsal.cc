#include "fase/rehearsal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fase/thread.h"
#include "medium/cache_lines.h"

namespace pawl::fase {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20;  // that a region stores; else it is let be
constexpr std::size_t kStackBytes = std::size_t{64} << 10;

std::atomic<int> percent{0};
std::atomic<std::uint64_t> rehearsed_threads{0};

// Bytes of live-ins that no value fills have whatever was on the stack.
constexpr unsigned char kFillWith = 0;
constexpr unsigned char kOtherFillWith = 0xff;
constexpr std::byte kFill{kFillWith};
constexpr std::byte kOtherFill{kOtherFillWith};

// What the functions called next find where they put their variables.  A sanitizer would keep a
// margin around the area.
__attribute__((noinline, no_sanitize_address)) void fill_stack(unsigned char with) {
  std::array<unsigned char, kStackBytes> area;
  std::memset(area.data(), with, area.size());
  asm volatile("" : : "r"(area.data()) : "memory");
}

const char* name_of(EventKind kind) {
  switch (kind) {
    case EventKind::cut:
      return "a cut";
    case EventKind::call:
      return "a call";
    case EventKind::function_return:
      return "a return";
    case EventKind::lock:
      return "taking a lock";
    case EventKind::unlock:
      return "releasing a lock";
    case EventKind::wait:
      return "waiting for a condition";
  }
  return "";
}

}  // namespace

void Rehearsal::set_percent(int wanted) { percent = wanted; }

std::unique_ptr<Rehearsal> Rehearsal::make() {
  if (percent == 0) return nullptr;
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
  return std::unique_ptr<Rehearsal>(new Rehearsal(kSpread * ++rehearsed_threads));
}

bool Rehearsal::draws() {
  // xorshift64
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ % 100 < static_cast<std::uint64_t>(percent);
}

void Rehearsal::begin(const Site& site) {
  if (!draws()) return region_.reset();
  const auto live_ins = site.bytes();
  region_ = Region{.function = site.function,
                   .number = site.region,
                   .live_ins = {live_ins.begin(), live_ins.end()},
                   .stored = {},
                   .lines = {},
                   .bytes = 0,
                   .blocks = {}};
}

Rehearsal::Event Rehearsal::describe(EventKind kind, std::uint64_t object, const Site* site) {
  Event event{.kind = kind, .object = object, .function = nullptr, .region = 0, .live_ins = {}};
  if (site == nullptr || site->function == nullptr) return event;
  const auto live_ins = site->bytes();
  event.function = site->function;
  event.region = site->region;
  event.live_ins.assign(live_ins.begin(), live_ins.end());
  return event;
}

void Rehearsal::reached(EventKind kind, std::uint64_t object, const Site* site) {
  if (!region_) return;
  if (is_on_) {
    again_ = describe(kind, object, site);
    std::longjmp(back_, 1);
  }
  if (region_->bytes > kBytesMax) return forget();
  const Event first = describe(kind, object, site);
  for (Range& range : region_->stored) {
    const std::size_t count = range.bytes.size();
    std::memcpy(range.bytes.data(), range.at, count);
  }
  const Event again = execute(kFillWith);
  expect_same_bytes();
  const Event once_more = execute(kOtherFillWith);
  expect_same_bytes();
  expect_same(first, again, once_more);
  forget();
}

Rehearsal::Event Rehearsal::execute(unsigned char fill) {
  blocks_again_ = 0;
  is_on_ = true;
  if (setjmp(back_) == 0) resume(fill);
  is_on_ = false;
  if (blocks_again_ != region_->blocks.size()) differs("it allocates and frees less");
  return std::move(again_);
}

void Rehearsal::resume(unsigned char fill) {
  alignas(std::max_align_t) std::array<std::byte, PAWL_FASE_LIVE_IN_BYTES_MAX> live_ins;
  alignas(std::max_align_t) std::array<std::byte, PAWL_FASE_LIVE_IN_BYTES_MAX> result;
  std::copy(region_->live_ins.begin(), region_->live_ins.end(), live_ins.begin());
  // Nothing else comes between: a function that is bound when it is called first would leave bytes
  // of the dynamic linker's on the stack.
  fill_stack(fill);
  region_->function->resume(region_->number, live_ins.data(), nullptr, result.data());
  again_ = describe(EventKind::function_return, 0, nullptr);
}

void Rehearsal::expect_same_bytes() const {
  for (const Range& range : region_->stored) {
    if (std::memcmp(range.at, range.bytes.data(), range.bytes.size()) != 0)
      differs("it leaves other bytes in persistent memory");
  }
}

void Rehearsal::expect_same(const Event& first, const Event& again, const Event& once_more) const {
  const auto is_other = [&](const Event& event) {
    return event.kind != first.kind || event.object != first.object ||
           event.function != first.function || event.region != first.region;
  };
  if (is_other(again) || is_other(once_more)) {
    differs(std::string("it came to ") + name_of(first.kind) + ", and now to " +
            name_of(is_other(again) ? again.kind : once_more.kind) + ", or another one");
  }
  for (std::size_t i = 0; i < first.live_ins.size(); ++i) {
    if (again.live_ins[i] == kFill && once_more.live_ins[i] == kOtherFill) continue;
    if (again.live_ins[i] != first.live_ins[i] || once_more.live_ins[i] != first.live_ins[i])
      differs("it computes other values: byte " + std::to_string(i) + " of those that follow");
  }
}

void Rehearsal::differs(const std::string& how) const {
  const pawl_fase_function& function = *region_->function;
  std::fprintf(stderr,
               "pawl: %s:%u: in %s: the region that begins there (number %u) is not the same when "
               "it is executed again: %s\n",
               function.source, function.regions[region_->number].line, function.name,
               region_->number, how.c_str());
  std::abort();
}

// ------------------------------------------------------------------------------------- in a region

void Rehearsal::stored(const void* at, std::size_t count) {
  if (!region_) return;
  const auto address = reinterpret_cast<std::uint64_t>(at);
  const std::uint64_t end = (address + count - 1) / kLineBytes;
  if (is_on_) {
    for (std::uint64_t line = address / kLineBytes; line <= end; ++line) {
      if (!region_->lines.contains(line)) differs("it stores elsewhere, too");
    }
    return;
  }
  region_->bytes += count;
  if (region_->bytes > kBytesMax) return;
  for (std::uint64_t line = address / kLineBytes; line <= end; ++line) region_->lines.insert(line);
  region_->stored.push_back({static_cast<const std::byte*>(at), std::vector<std::byte>(count)});
}

void Rehearsal::allocated(std::uint64_t block, std::uint64_t size_bytes) {
  if (region_) region_->blocks.push_back({block, size_bytes});
}

void Rehearsal::freed(std::uint64_t block) {
  if (region_) region_->blocks.push_back({block, kFreed});
}

Rehearsal::Block Rehearsal::next_block() {
  if (blocks_again_ == region_->blocks.size()) differs("it allocates and frees more");
  return region_->blocks[blocks_again_++];
}

std::uint64_t Rehearsal::allocate_again(std::uint64_t size_bytes) {
  const Block block = next_block();
  if (block.size_bytes != size_bytes) differs("it allocates another size");
  return block.address;
}

void Rehearsal::free_again(std::uint64_t block) {
  const Block first = next_block();
  if (first.address != block || first.size_bytes != kFreed) differs("it frees another block");
}

void* Rehearsal::sink(std::size_t count) {
  if (void* const room = sink_.room(count)) return room;
  differs("no memory is left for what it stores into memory of the program");
}

}  // namespace pawl::fase
