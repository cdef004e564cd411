// How a hostile heap is used, and what must then hold.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "heap/check.h"
#include "heap/closed_heap.h"
#include "heap/heap.h"
#include "heap/hostile_heap.h"
#include "heap/information.h"
#include "support/memory_medium.h"

namespace pawl::test {
namespace {

using heap_format::kSegmentBytes;

constexpr std::size_t kBlocksMax = 200'000;
constexpr std::size_t kStoreBytesMax = 4 * kPageBytes;
constexpr unsigned kVerifyEvery = 8;  // it reads all blocks
const std::string kPath = "/memory/file";

}  // namespace

std::uint64_t HostileHeap::faults() { return check_heap({arena_, *allocator_, roots_, kPath}, {}); }

// Everything that only looks.
std::string HostileHeap::walk(std::uint64_t faults) {
  pawl_heap_information information;
  const Status counted = count_heap({arena_, *allocator_, roots_, kPath}, information);
  std::size_t blocks = 0;
  const char* end = nullptr;
  std::string wrong;
  const Status walked = allocator_->for_each_block([&](const char* block, std::size_t size_bytes) {
    if (++blocks > kBlocksMax) wrong = "there is no end of blocks";
    if (block < base() + kSegmentBytes || block + size_bytes > base() + arena_.size_bytes())
      wrong = "a block leads out of the heap";
    else if (block < end && faults == 0)
      wrong = "blocks meet, and check finds nothing";
    end = block + size_bytes;
  });
  if (wrong.empty() && faults == 0 && !counted.ok())
    wrong = "check finds nothing, and its blocks cannot be counted: " + counted.text();
  if (wrong.empty() && faults == 0 && !walked.ok())
    wrong = "check finds nothing, and its blocks cannot be visited: " + walked.text();
  if (wrong.empty() && faults == 0 && information.blocks_used != blocks)
    wrong = "check finds nothing, and its blocks are counted wrongly";
  return wrong;
}

std::string HostileHeap::use(Random& random, unsigned steps) {
  const std::uint64_t found = faults();
  if (std::string wrong = walk(found); !wrong.empty()) return wrong;
  std::map<char*, std::size_t> blocks;
  const Status walked = allocator_->for_each_block([&](const char* block, std::size_t size_bytes) {
    blocks.emplace(const_cast<char*>(block), size_bytes);
  });
  std::string wrong;
  const auto expect = [&](const Status& status, const char* what) {
    if (found == 0 && !status.ok() && status.error_number() != ENOMEM && wrong.empty())
      wrong = std::string("check finds nothing, and ") + what + " fails: " + status.text();
    if (!status.ok() && status.text().empty()) wrong = "it fails and says nothing";
  };
  const auto took = [&](char* block) {
    auto size = allocator_->usable_size(block);
    expect(size.status(), "a new block's size");
    if (!size.ok()) return;
    if (block < base() + kSegmentBytes || block + size.value() > base() + arena_.size_bytes()) {
      wrong = "a new block leads out of the heap";
      return;
    }
    const auto next = blocks.lower_bound(block);
    if (found == 0 &&
        ((next != blocks.end() && block + size.value() > next->first) ||
         (next != blocks.begin() && std::prev(next)->first + std::prev(next)->second > block)))
      wrong = "check finds nothing, and a new block meets another";
    std::memset(block, 'u', std::min(size.value(), kStoreBytesMax));
    blocks[block] = size.value();
  };
  for (unsigned step = 0; step < steps && wrong.empty(); ++step) {
    const auto some = [&] {
      return std::next(blocks.begin(), static_cast<std::ptrdiff_t>(below(random, blocks.size())));
    };
    const std::size_t size = below(random, 64) == 0  ? below(random, 9'000'000)
                             : below(random, 8) == 0 ? below(random, 100'000)
                                                     : below(random, 3'000);
    switch (below(random, 8)) {
      case 0:
      case 1:
      case 2: {
        auto block =
            allocator_->allocate(size, std::size_t{16} << below(random, 13) * below(random, 2));
        expect(block.status(), "an allocation");
        if (block.ok()) took(block.value());
        break;
      }
      case 3:
      case 4:
      case 5: {
        if (blocks.empty()) break;
        const auto block = some();
        expect(allocator_->free(block->first), "a free");
        blocks.erase(block);
        break;
      }
      case 6: {
        if (blocks.empty()) break;
        const auto block = some();
        auto resized = allocator_->resize(block->first, size);
        expect(resized.status(), "a resize");
        if (resized.ok() && resized.value()) {
          char* const same = block->first;
          blocks.erase(block);
          took(same);
        }
        break;
      }
      default: {
        char* const anywhere = base() + below(random, arena_.size_bytes_max());
        [[maybe_unused]] const auto size_there = allocator_->usable_size(anywhere);
        if (found != 0) [[maybe_unused]]
          const Status freed = allocator_->free(anywhere);
        [[maybe_unused]] const auto root = roots_.root();
        const std::string name = "root " + std::to_string(below(random, 120));
        [[maybe_unused]] const auto named = roots_.named(name);
        [[maybe_unused]] const Status set = roots_.set_named(name, {base(), 0});
        break;
      }
    }
  }
  const std::uint64_t found_after = faults();
  if (wrong.empty() && found == 0 && found_after != 0)
    wrong = "check finds nothing, and after some use it does";
  return wrong.empty() ? walk(found_after) : wrong;
}

std::string HostileHeap::use_disk(const StoredDisk& stored, Random& random, unsigned steps) {
  MemoryDisk disk(stored, {.backing = Backing::memory_file});
  make_room();
  const bool is_file_alone = !stored.mark.has_value() && !stored.journal.has_value();
  std::string wrong;
  const auto say = [&](const Status& status) {
    if (!status.ok() && status.text().empty()) wrong = "it fails and says nothing";
  };
  std::uint64_t found = ~std::uint64_t{0};
  {
    const auto medium = disk.open();
    auto closed = ClosedHeap::look_at(*medium);
    say(closed.status());
    if (closed.ok()) {
      found = check_heap(closed.value()->parts(), {});
      pawl_heap_information information;
      say(count_heap(closed.value()->parts(), information));
    }
  }
  for (unsigned life = 0; life < 2 && wrong.empty(); ++life) {
    HeapOptions options;
    options.mapping.journal_size_bytes = 1 << 20;
    options.mapping.tracker = TrackerChoice::fault;  // quickly made
    auto opened = Heap::open(disk.open(), options);
    say(opened.status());
    if (!opened.ok()) {
      // As much address space as it asks for may not be there.
      const int error_number = opened.status().error_number();
      if (found == 0 && is_file_alone && error_number != EADDRINUSE && error_number != ENOMEM)
        wrong = "check finds nothing, and it is not opened: " + opened.status().text();
      break;
    }
    Heap& heap = *opened.value();
    const auto checked = heap.check({});
    if (!checked.ok()) wrong = "an open heap cannot be checked";
    if (checked.ok() && (found == 0 || life == 0) && (checked.value() == 0) != (found == 0))
      wrong = "closed it has " + std::to_string(found) + " faults, and open " +
              std::to_string(checked.value());
    pawl_heap_information information;
    say(heap.information(information));
    if (below(random, kVerifyEvery) == 0) say(heap.verify({}).status());
    std::vector<char*> taken;
    for (unsigned step = 0; step < steps; ++step) {
      auto block = heap.allocate(below(random, 10'000), 16);
      say(block.status());
      if (block.ok()) taken.push_back(block.value());
      if (!taken.empty() && below(random, 2) == 0) {
        auto moved = heap.reallocate(taken.back(), below(random, 30'000));
        say(moved.status());
        if (moved.ok()) taken.back() = moved.value();
      }
      if (below(random, 4) == 0) say(heap.free(base() + below(random, arena_.size_bytes_max())));
      if (below(random, 8) == 0) say(heap.roll_back()), taken.clear();
      if (below(random, 8) == 0) say(heap.sync());
    }
    say(heap.roll_back());
    if (const Status synced = heap.sync(); found == 0 && !synced.ok())
      wrong = "check finds nothing, and nothing can be synced: " + synced.text();
    if (const Status ended = heap.close(); !ended.ok())
      wrong = "it cannot be closed: " + ended.text();
  }
  reset();
  return wrong;
}

}  // namespace pawl::test
