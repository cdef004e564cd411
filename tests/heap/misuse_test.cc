// Misuse that needs more of a scene than tests/unit/heap_test.cc sets.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "heap/format.h"
#include "heap/heap_file.h"
#include "heap/heap_model.h"
#include "heap/sealed.h"
#include "pawl/pawl.h"

namespace pawl::test {
namespace {

constexpr std::uint64_t kSizeBytesMax = std::uint64_t{1} << 30;
constexpr unsigned kSecondsMax = 30;  // of a child that hangs

class HeapMisuse : public testing::Test {
 protected:
  HeapFile file_{kSizeBytesMax};

  void SetUp() override { file_.open(); }
  pawl_heap* heap() const { return file_.get(); }
  char* take(std::size_t size) { return static_cast<char*>(pawl_heap_malloc(heap(), size)); }
  char* base() const {
    pawl_heap_information information;
    EXPECT_EQ(pawl_heap_info(heap(), &information), 0);
    return reinterpret_cast<char*>(information.address);
  }
  void expect_no_sync() {
    EXPECT_EQ(pawl_heap_sync(heap()), -1);
    EXPECT_EQ(errno, EUCLEAN);
  }
};

// Every call, in a child that was forked while the heap's lock was held: none waits for it.
bool all_calls_are_refused(pawl_heap* heap, void* block) {
  const auto refused = [](bool failed) { return failed && errno == EPERM; };
  pawl_heap_information information;
  pawl_statistics statistics;
  return refused(pawl_heap_malloc(heap, 1) == nullptr) &&
         refused(pawl_heap_calloc(heap, 1, 1) == nullptr) &&
         refused(pawl_heap_realloc(heap, block, 1) == nullptr) &&
         refused(pawl_heap_aligned_alloc(heap, 64, 1) == nullptr) &&
         refused(pawl_heap_free(heap, block) == -1) &&
         refused(pawl_heap_usable_size(heap, block) == 0) &&
         refused(pawl_heap_root(heap) == nullptr) &&
         refused(pawl_heap_set_root(heap, block) == -1) &&
         refused(pawl_heap_named_root(heap, "a", nullptr) == nullptr) &&
         refused(pawl_heap_set_named_root(heap, "a", block, 0) == -1) &&
         refused(pawl_heap_sync(heap) == -1) && refused(pawl_heap_rollback(heap) == -1) &&
         refused(pawl_heap_check(heap, nullptr, nullptr) == -1) &&
         refused(pawl_heap_verify(heap, nullptr, nullptr) == -1) &&
         refused(pawl_heap_info(heap, &information) == -1) &&
         refused(pawl_heap_stats(heap, &statistics) == -1);
}

TEST_F(HeapMisuse, AChildForkedWhileTheLockWasHeldHungInClose) {
  struct Scene {
    pawl_heap* heap;
    void* block;
    pid_t child = 0;
  } scene{heap(), take(100)};
  ASSERT_EQ(pawl_heap_sync(heap()), 0);
  // A fault is told under the lock.
  base()[heap_format::kRootOffset + 7] = 'x';
  EXPECT_EQ(pawl_heap_check(
                heap(),
                [](void* context, const char*) {
                  auto& at = *static_cast<Scene*>(context);
                  at.child = ::fork();
                  if (at.child != 0) return;
                  ::alarm(kSecondsMax);
                  ::_exit(all_calls_are_refused(at.heap, at.block) && pawl_heap_close(at.heap) == 0
                              ? 0
                              : 1);
                },
                &scene),
            1);
  int status = 0;
  ASSERT_EQ(::waitpid(scene.child, &status, 0), scene.child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_EQ(pawl_heap_rollback(heap()), 0);
}

// It answered 0, and the journal was of a file that was no heap any more.
TEST_F(HeapMisuse, TheFileOfAnOpenHeapWasCutBeneathIt) {
  char* const block = take(1 << 20);
  std::memset(block, 'a', 1 << 20);
  ASSERT_EQ(pawl_heap_set_root(heap(), block), 0);
  ASSERT_EQ(pawl_heap_sync(heap()), 0);
  const auto size = std::filesystem::file_size(file_.path());
  const int descriptor = ::open(file_.path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(pawl_ftruncate(descriptor, 0), -1);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_NE(std::strstr(pawl_last_error(), "open as a heap"), nullptr) << pawl_last_error();
  EXPECT_EQ(std::filesystem::file_size(file_.path()), size);
  file_.close();
  file_.open();
  EXPECT_EQ(static_cast<char*>(pawl_heap_root(heap()))[500'000], 'a');
  file_.close();
  EXPECT_EQ(pawl_ftruncate(descriptor, 0), 0) << pawl_last_error();
  ::close(descriptor);
}

TEST_F(HeapMisuse, WhatARollbackTookBackIsNotFreed) {
  char* const kept = take(100);
  ASSERT_EQ(pawl_heap_sync(heap()), 0);
  for (const std::size_t size : {100u, 20'000u, 5'000'000u, 40'000'000u}) {
    char* const block = take(size);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(pawl_heap_rollback(heap()), 0);
    EXPECT_EQ(pawl_heap_free(heap(), block), -1) << size;
    EXPECT_EQ(errno, EINVAL);
    expect_no_sync();
    ASSERT_EQ(pawl_heap_rollback(heap()), 0);
  }
  EXPECT_EQ(pawl_heap_free(heap(), kept), 0);
  EXPECT_EQ(pawl_heap_sync(heap()), 0);
}

// Of each kind of block, freed twice; and between the two its place is part of something larger.
TEST_F(HeapMisuse, ASecondFreeIsRefusedWhateverHasBecomeOfThePlace) {
  for (const std::size_t size : {16u, 100u, 7'680u, 20'000u, 5'000'000u}) {
    char* const block = take(size);
    ASSERT_EQ(pawl_heap_free(heap(), block), 0);
    char* const larger = take(2 * size + 8 * kPageBytes);
    if (larger != block) {
      EXPECT_EQ(pawl_heap_free(heap(), block), -1) << size;
      EXPECT_EQ(errno, EINVAL);
      expect_no_sync();
    }
    ASSERT_EQ(pawl_heap_rollback(heap()), 0);
  }
}

// The block that a root leads to may be freed, as any; the root is the program's to set anew.
TEST_F(HeapMisuse, ARootMayOutliveItsBlock) {
  char* const block = take(100);
  ASSERT_EQ(pawl_heap_set_root(heap(), block), 0);
  ASSERT_EQ(pawl_heap_free(heap(), block), 0);
  EXPECT_EQ(pawl_heap_sync(heap()), 0);
  EXPECT_EQ(pawl_heap_root(heap()), block);
  EXPECT_EQ(check_text(heap()), "");
}

// The rest of a huge block took what the table called free, though it was in use.
TEST_F(HeapMisuse, AWrongTableDoesNotGiveSegmentsInUseAway) {
  std::vector<char*> huge;
  for (int i = 0; i < 3; ++i) huge.push_back(take(3'000'000));
  std::strcpy(huge[1], "in use");
  ASSERT_EQ(pawl_heap_free(heap(), huge[0]), 0);
  const auto segment = static_cast<std::uint64_t>(huge[1] - base()) / heap_format::kSegmentBytes;
  base()[heap_format::kTableOffset + segment] = heap_format::kSegmentFree;
  EXPECT_EQ(take(7'000'000), nullptr);
  EXPECT_EQ(errno, EUCLEAN);
  EXPECT_STREQ(huge[1], "in use");
  EXPECT_NE(check_text(heap()), "");
  expect_no_sync();
  ASSERT_EQ(pawl_heap_rollback(heap()), 0);
  EXPECT_EQ(check_text(heap()), "");
}

// An entry behind the end was believed once the heap had grown, and pawl_heap_check passed over it.
TEST_F(HeapMisuse, AnEntryOfASegmentThatIsNotThereIsAFault) {
  base()[heap_format::kTableOffset + 5] = heap_format::kSegmentOfPages;
  EXPECT_NE(check_text(heap()), "");
  EXPECT_EQ(take(30'000'000), nullptr);
  EXPECT_EQ(errno, EUCLEAN);
  expect_no_sync();
}

}  // namespace
}  // namespace pawl::test
