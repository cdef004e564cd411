// Which heaps can be open together: all but those of which bytes of two have one address.

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heap/address_space.h"
#include "heap/format.h"
#include "pawl/heap.h"
#include "pawl/pawl.h"
#include "support/temporary_directory.h"

namespace pawl::test {
namespace {

using heap_format::kSegmentBytes;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
// Where nothing else is; a drawn heap is there once in a thousand runs.
constexpr std::uint64_t kPlace = heap_format::kAddressMin + 128 * kGiB;

class HeapAddresses : public testing::Test {
 protected:
  static pawl_heap_options options(std::uint64_t address, std::uint64_t size_bytes_max) {
    pawl_heap_options options;
    EXPECT_EQ(pawl_heap_options_init(&options), 0);
    options.mapping.journal_size_bytes = kMiB;
    options.address = address;
    options.size_bytes_max = size_bytes_max;
    return options;
  }
  std::string path(const std::string& name) const { return directory_ / (name + ".heap"); }
  pawl_heap* open(const std::string& name, std::uint64_t address = 0,
                  std::uint64_t size_bytes_max = 0) const {
    const pawl_heap_options with = options(address, size_bytes_max);
    return pawl_heap_open(path(name).c_str(), &with);
  }
  // A heap which uses so many bytes, and is closed.
  void make(const std::string& name, std::uint64_t address, std::uint64_t size_bytes_max,
            std::uint64_t used_bytes = 0) const {
    pawl_heap* const made = open(name, address, size_bytes_max);
    ASSERT_NE(made, nullptr) << pawl_last_error();
    EXPECT_EQ(information(made).address, address);
    if (used_bytes > 0) {
      ASSERT_NE(pawl_heap_malloc(made, used_bytes), nullptr) << pawl_last_error();
    }
    ASSERT_EQ(pawl_heap_sync(made), 0) << pawl_last_error();
    ASSERT_EQ(pawl_heap_close(made), 0) << pawl_last_error();
  }
  static pawl_heap_information information(pawl_heap* heap) {
    pawl_heap_information information{};
    EXPECT_EQ(pawl_heap_info(heap, &information), 0) << pawl_last_error();
    return information;
  }
  static void expect_works(pawl_heap* heap) {
    void* const block = pawl_heap_malloc(heap, 1000);
    ASSERT_NE(block, nullptr) << pawl_last_error();
    EXPECT_EQ(pawl_heap_of(block), heap);
    EXPECT_EQ(pawl_heap_sync(heap), 0) << pawl_last_error();
    ASSERT_NE(pawl_heap_malloc(heap, 500'000), nullptr) << pawl_last_error();
    EXPECT_EQ(pawl_heap_rollback(heap), 0) << pawl_last_error();
    EXPECT_EQ(pawl_heap_free(heap, block), 0) << pawl_last_error();
    EXPECT_EQ(pawl_heap_sync(heap), 0) << pawl_last_error();
    EXPECT_EQ(pawl_heap_check(heap, nullptr, nullptr), 0);
  }

  TemporaryDirectory directory_;
};

// Sixty-four heaps, each of which may grow over all that follow it: they could not be open
// together, though there was a byte of one only at each address.
TEST_F(HeapAddresses, HeapsThatWereMadeApartCollidedByWhatTheyMightGrowTo) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < PAWL_HEAPS_MAX; ++i) {
    names.push_back(std::to_string(i));
    make(names.back(), kPlace + i * PAWL_HEAP_SIZE_MIN, 4 * kGiB);
  }
  std::shuffle(names.begin(), names.end(), std::minstd_rand(7));
  std::vector<pawl_heap*> opened;
  for (const std::string& name : names) {
    opened.push_back(open(name));
    ASSERT_NE(opened.back(), nullptr) << pawl_last_error();
  }
  for (pawl_heap* const heap : opened) expect_works(heap);
  for (pawl_heap* const heap : opened) EXPECT_EQ(pawl_heap_close(heap), 0) << pawl_last_error();
  // Alone it has all its room again.
  pawl_heap* const alone = open("0");
  ASSERT_NE(alone, nullptr) << pawl_last_error();
  EXPECT_EQ(information(alone).size_bytes_max, 4 * kGiB);
  EXPECT_NE(pawl_heap_malloc(alone, kGiB), nullptr) << pawl_last_error();
  EXPECT_EQ(pawl_heap_close(alone), 0);
}

TEST_F(HeapAddresses, AHeapGrowsUpToItsNeighbourAndSaysWhyNoFurther) {
  make("low", kPlace, kGiB);
  make("high", kPlace + 64 * kMiB, kGiB);
  for (const bool is_low_first : {true, false}) {
    pawl_heap* low = is_low_first ? open("low") : nullptr;
    pawl_heap* const high = open("high");
    if (!is_low_first) low = open("low");
    ASSERT_TRUE(low != nullptr && high != nullptr) << pawl_last_error();
    EXPECT_EQ(information(low).size_bytes_max, 64 * kMiB);
    EXPECT_EQ(information(high).size_bytes_max, kGiB);
    EXPECT_EQ(pawl_heap_malloc(low, 64 * kMiB), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_THAT(pawl_last_error(), HasSubstr("another heap"));
    EXPECT_NE(pawl_heap_malloc(low, 40 * kMiB), nullptr) << pawl_last_error();
    EXPECT_EQ(pawl_heap_rollback(low), 0) << pawl_last_error();
    expect_works(low);
    expect_works(high);
    EXPECT_EQ(pawl_heap_of(reinterpret_cast<void*>(kPlace + 64 * kMiB)), high);
    EXPECT_EQ(pawl_heap_close(high), 0);
    EXPECT_EQ(pawl_heap_close(low), 0);
  }
}

TEST_F(HeapAddresses, HeapsWithBytesAtOneAddressAreRefusedByTheNamesOfBoth) {
  make("low", kPlace, kGiB, 100 * kMiB);
  make("high", kPlace + 64 * kMiB, kGiB);
  for (const auto& [first, second] : {std::pair{"low", "high"}, {"high", "low"}}) {
    pawl_heap* const there = open(first);
    ASSERT_NE(there, nullptr) << pawl_last_error();
    const std::uint64_t size_bytes_max = information(there).size_bytes_max;
    EXPECT_EQ(open(second), nullptr);
    EXPECT_EQ(errno, EADDRINUSE);
    const std::string text = pawl_last_error();
    EXPECT_THAT(text, HasSubstr(path(first)));
    EXPECT_THAT(text, HasSubstr(path(second)));
    EXPECT_THAT(text, HasSubstr("different processes"));
    EXPECT_EQ(information(there).size_bytes_max, size_bytes_max);
    expect_works(there);
    EXPECT_EQ(pawl_heap_close(there), 0);
  }
}

// As any memory in the way it is one condition; its code was that of a system call that failed.
TEST_F(HeapAddresses, TheCopyThatAChildHasOfAHeapIsInTheWayOfAnother) {
  make("low", kPlace, kGiB, 100 * kMiB);
  make("high", kPlace + 64 * kMiB, kGiB);
  pawl_heap* const there = open("low");
  ASSERT_NE(there, nullptr) << pawl_last_error();
  const pid_t child = ::fork();
  if (child == 0) {
    EXPECT_EQ(open("high"), nullptr);
    EXPECT_EQ(errno, EADDRINUSE) << pawl_last_error();
    EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_ADDRESS_TAKEN) << pawl_last_error();
    EXPECT_THAT(pawl_last_error(), HasSubstr("a forked child"));
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pawl_heap_close(there), 0);
}

// The address is asked for when there is no heap yet, and not believed to be possible.
TEST_F(HeapAddresses, AnAddressForANewHeapIsKeptToOrRefused) {
  for (const std::uint64_t wrong : {std::uint64_t{4096}, kPlace + 4096, heap_format::kAddressMax,
                                    heap_format::kAddressMax - kGiB + kSegmentBytes}) {
    EXPECT_EQ(open("wrong", wrong, kGiB), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_THAT(pawl_last_error(), HasSubstr("address"));
  }
  make("there", kPlace, kGiB);
  pawl_heap* const there = open("there", kPlace + 8 * kGiB);  // it has one
  ASSERT_NE(there, nullptr) << pawl_last_error();
  EXPECT_EQ(information(there).address, kPlace);
  EXPECT_EQ(open("new", kPlace + kGiB / 2, kGiB), nullptr);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_THAT(pawl_last_error(), HasSubstr("there.heap"));
  EXPECT_EQ(pawl_heap_close(there), 0);
  make("new", heap_format::kAddressMax - kGiB, kGiB);
}

// They had one of 20480 places, so that of 64 heaps made apart two met in one of ten such sets,
// however small.
TEST_F(HeapAddresses, DrawnAddressesAreAnywhereInTheRange) {
  constexpr std::size_t kDraws = 2'000;
  std::vector<std::uint64_t> drawn;
  for (std::size_t i = 0; i < kDraws; ++i) {
    drawn.push_back(draw_heap_address(kGiB));
    ASSERT_GE(drawn.back(), heap_format::kAddressMin);
    ASSERT_LE(drawn.back() + kGiB, heap_format::kAddressMax);
    ASSERT_EQ(drawn.back() % kSegmentBytes, 0u);
  }
  std::sort(drawn.begin(), drawn.end());
  std::size_t meet = 0;
  for (std::size_t i = 0; i < kDraws; ++i)
    for (std::size_t j = i + 1; j < kDraws && drawn[j] - drawn[i] < PAWL_HEAP_SIZE_MIN; ++j) ++meet;
  // By the bound that docs/heap.md states; twice it, and some, for chance.
  const double expected =
      static_cast<double>(kDraws) * (kDraws - 1) / 2 * 2 * PAWL_HEAP_SIZE_MIN /
      static_cast<double>(heap_format::kAddressMax - heap_format::kAddressMin - kGiB);
  EXPECT_LE(static_cast<double>(meet), 2 * expected + 15);
  const std::uint64_t range = heap_format::kAddressMax - heap_format::kAddressMin;
  EXPECT_LT(drawn.front() - heap_format::kAddressMin, range / 50);
  EXPECT_LT(heap_format::kAddressMax - drawn.back(), range / 50 + kGiB);
}

}  // namespace
}  // namespace pawl::test
