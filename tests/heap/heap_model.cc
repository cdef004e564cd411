#include "heap/heap_model.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "heap/allocator.h"
#include "heap/size_classes.h"
#include "track/store_marks.h"

namespace pawl::test {
namespace {

// Of larger blocks only so many bytes at both ends are filled: trials are to be many.  And where a
// huge block covers what would be the header of another segment.
constexpr std::size_t kEdgeBytes = 32 << 10;

// The bytes at `at` of a block.  No word is a pointer into anything, nor what a block that ends
// within it leaves of the block that was there before: pawl_heap_verify is to find none.
std::uint64_t word_of(const HeapModel::Block& block, std::size_t at) {
  constexpr std::uint64_t kNoPointer = 0xff00000000000000;
  constexpr std::uint64_t kSmall = 0xffffff;
  const std::uint64_t word = (block.tag + at) * 0x9e3779b97f4a7c15;
  const bool ends_within = at + sizeof word > block.size;
  return ends_within ? (word >> 29) & kSmall : (word ^ (word >> 29)) | kNoPointer;
}

// Calls visit(offset, count) for the parts that are filled.
template <class Visit>
void for_each_part(std::size_t size, Visit visit) {
  if (size <= 2 * kEdgeBytes) return visit(std::size_t{0}, size);
  visit(std::size_t{0}, kEdgeBytes);
  const std::size_t second = round_down(size - kEdgeBytes, sizeof(std::uint64_t));
  for (std::size_t at = heap_format::kSegmentBytes - kPageBytes; at + kPageBytes < second;
       at += heap_format::kSegmentBytes)
    visit(at, kPageBytes);
  visit(second, size - second);
}

void fill(char* block, const HeapModel::Block& as) {
  for_each_part(as.size, [&](std::size_t start, std::size_t count) {
    for (std::size_t at = start; at < start + count; at += sizeof(std::uint64_t)) {
      const std::uint64_t word = word_of(as, at);
      std::memcpy(block + at, &word, std::min(sizeof word, start + count - at));
    }
    note_stored(block + start, count);
  });
}

// Of the bytes that a block of this size is filled with, the first `count` are there.
bool is_filled(const char* block, const HeapModel::Block& as, std::size_t count) {
  bool right = true;
  for_each_part(as.size, [&](std::size_t start, std::size_t length) {
    for (std::size_t at = start; right && at < std::min(count, start + length);
         at += sizeof(std::uint64_t)) {
      const std::uint64_t word = word_of(as, at);
      right = std::memcmp(block + at, &word,
                          std::min(sizeof word, std::min(count, start + length) - at)) == 0;
    }
  });
  return right;
}

}  // namespace

// `block` and what it can hold lie between its neighbours.
std::string HeapModel::find_place(pawl_heap* heap, char* block, std::size_t size) const {
  const std::size_t usable = pawl_heap_usable_size(heap, block);
  if (usable < size) return "a block holds less than was asked for";
  const auto next = blocks_.lower_bound(block);
  if (next != blocks_.end() && block + usable > next->first) return "a block meets the next";
  if (next == blocks_.begin()) return {};
  const auto& [before, of] = *std::prev(next);
  return before + std::max(of.size, pawl_heap_usable_size(heap, before)) > block
             ? "a block meets the one before"
             : std::string();
}

std::string HeapModel::add(pawl_heap* heap, char* block, std::size_t size, std::size_t alignment) {
  if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) return "a block is not aligned";
  if (const std::string wrong = find_place(heap, block, size); !wrong.empty()) return wrong;
  const Block made{size, ++tags_ << 20};
  blocks_.emplace(block, made);
  fill(block, made);
  return {};
}

void HeapModel::rewrite(char* block) {
  Block& of = blocks_.at(block);
  of.tag = ++tags_ << 20;
  fill(block, of);
}

std::string HeapModel::resized(pawl_heap* heap, char* before, char* after, std::size_t size) {
  const Block was = blocks_.at(before);
  blocks_.erase(before);
  if (!is_filled(after, was, std::min(was.size, size))) return "realloc lost bytes";
  return add(heap, after, size, alignof(std::max_align_t));
}

void HeapModel::set_named(const std::string& name, Named to) {
  if (to.address == nullptr)
    named_.erase(name);
  else
    named_[name] = to;
}

bool HeapModel::holds(const char* block) const {
  const Block& of = blocks_.at(const_cast<char*>(block));
  return is_filled(block, of, of.size);
}

std::uint64_t HeapModel::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [block, of] : blocks_) sum += of.size;
  return sum;
}

char* HeapModel::any_block(Random& random) const {
  return std::next(blocks_.begin(), static_cast<std::ptrdiff_t>(below(random, blocks_.size())))
      ->first;
}

std::string HeapModel::compare(pawl_heap* heap) const {
  pawl_heap_information information;
  if (pawl_heap_info(heap, &information) != 0)
    return std::string("it does not count its blocks: ") + pawl_last_error();
  if (information.blocks_used != blocks_.size())
    return "it has " + std::to_string(information.blocks_used) + " blocks instead of " +
           std::to_string(blocks_.size());
  if (information.bytes_used + information.bytes_free + information.bytes_overhead !=
      information.size_bytes)
    return "its counts do not add up";
  for (const auto& [block, of] : blocks_) {
    if (pawl_heap_usable_size(heap, block) < of.size) return "a block is not there";
    if (!is_filled(block, of, of.size)) return "a block has other bytes";
  }
  if (pawl_heap_root(heap) != root_) return "the root is another";
  if (information.named_roots != named_.size()) return "it has other named roots";
  for (const auto& [name, to] : named_) {
    std::uint64_t type_tag = 0;
    if (pawl_heap_named_root(heap, name.c_str(), &type_tag) != to.address ||
        type_tag != to.type_tag)
      return "the root " + name + " is another";
  }
  return {};
}

std::size_t draw_block_size(Random& random) {
  const auto at_an_edge = [&](std::size_t edge) { return edge + 1 - below(random, 3); };
  switch (below(random, 40)) {
    case 0:
      return 0;
    case 1:
    case 2:
    case 3:
      return at_an_edge(kSizeClasses[below(random, kSizeClassCount)].block_bytes);
    case 4:
      return at_an_edge(kSlabBlockMax);
    case 5:
      return at_an_edge(kPageBytes * (1 + below(random, 70)));
    case 6:
      return below(random, 16) == 0 ? at_an_edge(kRunBytesMax) : below(random, 300'000);
    case 7:
      return below(random, 16) == 0 ? below(random, 10'000'000) : below(random, 30'000);
    case 8:
    case 9:
    case 10:
    case 11:
    case 12:
      return below(random, 8'000);
    default:
      return below(random, 300);
  }
}

std::string check_text(pawl_heap* heap) {
  std::string faults;
  const long count = pawl_heap_check(
      heap,
      [](void* context, const char* text) {
        *static_cast<std::string*>(context) += std::string(text) + "\n";
      },
      &faults);
  if (count < 0) return std::string("it cannot be looked at: ") + pawl_last_error();
  return count != 0 && faults.empty() ? "faults that are not told" : faults;
}

}  // namespace pawl::test
