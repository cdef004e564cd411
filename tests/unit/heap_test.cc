// The heap as a C program sees it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heap/format.h"
#include "heap/sealed.h"
#include "pawl/heap.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using testing::HasSubstr;

std::vector<std::string> faults_of(pawl_heap* heap,
                                   long (*look)(pawl_heap*, pawl_heap_report*, void*)) {
  std::vector<std::string> faults;
  const long count = look(
      heap,
      [](void* context, const char* text) {
        static_cast<std::vector<std::string>*>(context)->push_back(text);
      },
      &faults);
  EXPECT_EQ(count, static_cast<long>(faults.size())) << pawl_last_error();
  return faults;
}

class HeapTest : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "test.heap";
  pawl_heap* heap_ = nullptr;

  void TearDown() override {
    if (heap_ != nullptr) {
      EXPECT_EQ(pawl_heap_close(heap_), 0) << pawl_last_error();
    }
  }

  static pawl_heap_options options() {
    pawl_heap_options made;
    EXPECT_EQ(pawl_heap_options_init(&made), 0);
    made.mapping.journal_size_bytes = 1 << 20;
    made.size_bytes_max = std::uint64_t{1} << 30;
    return made;
  }
  static pawl_heap_options options_with_layout(const char* layout) {
    pawl_heap_options made = options();
    made.layout = layout;
    return made;
  }
  void open(const pawl_heap_options& with = options()) {
    heap_ = pawl_heap_open(path_.c_str(), &with);
    ASSERT_NE(heap_, nullptr) << pawl_last_error();
  }
  void close() { ASSERT_EQ(pawl_heap_close(std::exchange(heap_, nullptr)), 0); }
  void reopen() {
    close();
    open();
  }
  void sync() { ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error(); }
  // The errno with which the file is refused.
  int refusal(const pawl_heap_options& with = options()) {
    errno = 0;
    pawl_heap* const opened = pawl_heap_open(path_.c_str(), &with);
    const int refused_with = errno;
    EXPECT_EQ(opened, nullptr);
    if (opened != nullptr) pawl_heap_close(opened);
    return refused_with;
  }
  // Changes the identity in the closed file, and seals it unless told not to.
  void change_identity(const std::function<void(heap_format::Identity&)>& change,
                       bool seal_it = true) {
    heap_format::Identity identity;
    const int file = ::open(path_.c_str(), O_RDWR);
    ASSERT_EQ(::pread(file, &identity, sizeof identity, 0), ssize_t{sizeof identity});
    change(identity);
    if (seal_it) seal(identity);
    ASSERT_EQ(::pwrite(file, &identity, sizeof identity, 0), ssize_t{sizeof identity});
    ::close(file);
  }
};

TEST_F(HeapTest, WhatIsSyncedIsThereAgainAtTheSameAddress) {
  open();
  char* const text = static_cast<char*>(pawl_heap_malloc(heap_, 100));
  std::strcpy(text, "durable");
  ASSERT_EQ(pawl_heap_set_root(heap_, text), 0);
  sync();
  std::strcpy(text, "lost");
  reopen();
  EXPECT_EQ(pawl_heap_root(heap_), text);
  EXPECT_STREQ(text, "durable");
  EXPECT_EQ(pawl_heap_of(text), heap_);
  EXPECT_TRUE(faults_of(heap_, pawl_heap_check).empty());
}

TEST_F(HeapTest, ANewHeapIsDurableAndClosingLeavesOnlyTheFile) {
  open();
  close();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
  open();
  EXPECT_EQ(pawl_heap_root(heap_), nullptr);
}

TEST_F(HeapTest, ALargeMaximumCostsNoDisk) {
#ifdef __SANITIZE_THREAD__
  const std::uint64_t size_bytes_max = std::uint64_t{256} << 30;  // it leaves little address space
#else
  const std::uint64_t size_bytes_max = PAWL_HEAP_SIZE_MAX;
#endif
  pawl_heap_options with = options();
  with.size_bytes_max = size_bytes_max;
  open(with);
  sync();
  close();
  struct stat status;
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_LE(status.st_blocks * 512, 256 << 10);
  open();
  pawl_heap_information information;
  ASSERT_EQ(pawl_heap_info(heap_, &information), 0);
  EXPECT_EQ(information.size_bytes_max, size_bytes_max);
}

TEST_F(HeapTest, AMaximumCanBeRaisedAndNotLowered) {
  pawl_heap_options with = options();
  with.size_bytes_max = PAWL_HEAP_SIZE_MIN;
  open(with);
  EXPECT_EQ(pawl_heap_malloc(heap_, 20 << 20), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  close();
  open();
  void* const block = pawl_heap_malloc(heap_, 20 << 20);
  ASSERT_NE(block, nullptr) << pawl_last_error();
  ASSERT_EQ(pawl_heap_set_root(heap_, block), 0);
  sync();
  close();
  with.size_bytes_max = PAWL_HEAP_SIZE_MIN;
  open(with);
  EXPECT_EQ(pawl_heap_root(heap_), block);
}

TEST_F(HeapTest, ItGrowsWhileItIsOpenAndARollbackTakesGrowthBack) {
  open();
  pawl_heap_information before;
  ASSERT_EQ(pawl_heap_info(heap_, &before), 0);
  char* const large = static_cast<char*>(pawl_heap_malloc(heap_, 50 << 20));
  ASSERT_NE(large, nullptr);
  large[(50 << 20) - 1] = 'x';
  ASSERT_EQ(pawl_heap_rollback(heap_), 0);
  pawl_heap_information after;
  ASSERT_EQ(pawl_heap_info(heap_, &after), 0);
  EXPECT_EQ(after.size_bytes, before.size_bytes);
  EXPECT_TRUE(faults_of(heap_, pawl_heap_check).empty());
  char* const again = static_cast<char*>(pawl_heap_calloc(heap_, 50, 1 << 20));
  EXPECT_EQ(again, large);
  EXPECT_EQ(again[(50 << 20) - 1], 0);
  again[(50 << 20) - 1] = 'y';
  ASSERT_EQ(pawl_heap_set_root(heap_, again), 0);
  sync();
  reopen();
  EXPECT_EQ(static_cast<char*>(pawl_heap_root(heap_))[(50 << 20) - 1], 'y');
}

TEST_F(HeapTest, ARollbackTakesAllocationsAndFreesBack) {
  open();
  std::vector<void*> kept;
  for (int i = 0; i < 100; ++i) kept.push_back(pawl_heap_malloc(heap_, 300));
  sync();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(pawl_heap_free(heap_, kept[i]), 0);
  void* const fresh = pawl_heap_malloc(heap_, 5'000);
  ASSERT_EQ(pawl_heap_rollback(heap_), 0);
  for (void* const block : kept) EXPECT_GE(pawl_heap_usable_size(heap_, block), 300u);
  EXPECT_EQ(pawl_heap_usable_size(heap_, fresh), 0u);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(faults_of(heap_, pawl_heap_check).empty());
  for (void* const block : kept) EXPECT_EQ(pawl_heap_free(heap_, block), 0);
  sync();
}

TEST_F(HeapTest, NamedRootsAreFoundAgainAndRemoved) {
  open();
  void* const block = pawl_heap_malloc(heap_, 64);
  ASSERT_EQ(pawl_heap_set_named_root(heap_, "users", block, 7), 0);
  ASSERT_EQ(pawl_heap_set_named_root(heap_, std::string(47, 'n').c_str(), block, 8), 0);
  sync();
  reopen();
  std::uint64_t tag = 0;
  EXPECT_EQ(pawl_heap_named_root(heap_, "users", &tag), block);
  EXPECT_EQ(tag, 7u);
  EXPECT_EQ(pawl_heap_named_root(heap_, std::string(47, 'n').c_str(), &tag), block);
  EXPECT_EQ(tag, 8u);
  EXPECT_EQ(pawl_heap_named_root(heap_, "user", nullptr), nullptr);
  EXPECT_EQ(errno, ENOENT);
  for (const std::string& bad : {std::string(), std::string(48, 'n')}) {
    EXPECT_EQ(pawl_heap_set_named_root(heap_, bad.c_str(), block, 0), -1);
    EXPECT_EQ(errno, EINVAL);
  }
  int outside = 0;
  EXPECT_EQ(pawl_heap_set_named_root(heap_, "outside", &outside, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(pawl_heap_set_root(heap_, &outside), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(pawl_heap_set_named_root(heap_, "users", nullptr, 0), 0);
  EXPECT_EQ(pawl_heap_set_named_root(heap_, "users", nullptr, 0), -1);
  EXPECT_EQ(errno, ENOENT);
  for (int i = 0; i < PAWL_HEAP_ROOTS_MAX - 1; ++i)
    ASSERT_EQ(pawl_heap_set_named_root(heap_, std::to_string(i).c_str(), block, 0), 0);
  EXPECT_EQ(pawl_heap_set_named_root(heap_, "one more", block, 0), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(pawl_last_error_code(), PAWL_ERROR_TOO_MANY);
  sync();
}

TEST_F(HeapTest, AFileThatIsNoHeapIsRefusedAndLeftAsItWas) {
  test::write_file(path_, "some text of some other program\n");
  EXPECT_EQ(refusal(), EINVAL);
  EXPECT_THAT(pawl_last_error(), HasSubstr("is no heap"));
  EXPECT_EQ(test::read_file(path_), "some text of some other program\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(HeapTest, ANewerVersionIsRefusedWithBothNumbers) {
  open();
  close();
  change_identity([](heap_format::Identity& identity) { identity.version = 9; });
  EXPECT_EQ(refusal(), ENOTSUP);
  EXPECT_THAT(pawl_last_error(), HasSubstr("version 9"));
  EXPECT_THAT(pawl_last_error(), HasSubstr("up to 1"));
}

TEST_F(HeapTest, AnotherMachinesHeapIsRefusedWithBothNames) {
  open();
  close();
  change_identity([](heap_format::Identity& identity) {
    identity.machine = {};
    std::strcpy(identity.machine.data(), "PDP-11, 16-bit");
  });
  EXPECT_EQ(refusal(), ENOTSUP);
  EXPECT_THAT(pawl_last_error(), HasSubstr("PDP-11"));
  EXPECT_THAT(pawl_last_error(), HasSubstr("64-bit"));
}

TEST_F(HeapTest, AnotherLayoutIsRefusedWithBothNames) {
  open(options_with_layout("library A"));
  close();
  EXPECT_EQ(refusal(options_with_layout("library B")), ENOTSUP);
  EXPECT_THAT(pawl_last_error(), HasSubstr("library A"));
  EXPECT_THAT(pawl_last_error(), HasSubstr("library B"));
  open();  // plain C says nothing about the layout
  close();
  const std::string too_long(64, 'x');
  EXPECT_EQ(refusal(options_with_layout(too_long.c_str())), EINVAL);
}

TEST_F(HeapTest, ALayoutIsRecordedWhereThereWasNone) {
  open();
  close();
  open(options_with_layout("library A"));
  close();
  EXPECT_EQ(refusal(options_with_layout("library B")), ENOTSUP);
}

TEST_F(HeapTest, ADamagedHeaderIsRefused) {
  open();
  close();
  change_identity([](heap_format::Identity& identity) { identity.address ^= 1 << 30; }, false);
  EXPECT_EQ(refusal(), EUCLEAN);
}

// A file of somebody else was mapped wherever it said: in the gap below the stack, or where the
// memory of malloc() grows.
TEST_F(HeapTest, AFileChoseAnAddressBesideTheProgram) {
  open();
  close();
  const auto beside = [](const void* address) {
    return round_down(reinterpret_cast<std::uintptr_t>(address), heap_format::kSegmentBytes) -
           (std::uint64_t{1} << 30);
  };
  const int on_the_stack = 0;
  for (const std::uint64_t address :
       {beside(&on_the_stack), beside(reinterpret_cast<void*>(&pawl_heap_open)),
        std::uint64_t{heap_format::kSegmentBytes}, heap_format::kAddressMax,
        heap_format::kAddressMin - heap_format::kSegmentBytes,
        ~std::uint64_t{0} - heap_format::kSegmentBytes + 1}) {
    change_identity([&](heap_format::Identity& identity) { identity.address = address; });
    EXPECT_EQ(refusal(), EUCLEAN) << std::hex << address;
  }
}

TEST_F(HeapTest, AHeapThatWasCutIsRefused) {
  open();
  close();
  ASSERT_EQ(::truncate(path_.c_str(), 5'000'000), 0);
  EXPECT_EQ(refusal(), EUCLEAN);
  EXPECT_THAT(pawl_last_error(), HasSubstr("cut"));
}

TEST_F(HeapTest, AClashOfAddressesSaysWhoIsThere) {
  open();
  close();
  heap_format::Identity identity;
  const int file = ::open(path_.c_str(), O_RDONLY);
  ASSERT_EQ(::pread(file, &identity, sizeof identity, 0), ssize_t{sizeof identity});
  ::close(file);
  const std::string other = directory_ / "other.data";
  test::write_file(other, std::string(8192, 'o'));
  const int other_file = ::open(other.c_str(), O_RDONLY);
  void* const there = ::mmap(reinterpret_cast<void*>(identity.address + (1 << 20)), 8192, PROT_READ,
                             MAP_PRIVATE | MAP_FIXED_NOREPLACE, other_file, 0);
  ASSERT_NE(there, MAP_FAILED);
  EXPECT_EQ(refusal(), EADDRINUSE);
  EXPECT_THAT(pawl_last_error(), HasSubstr("other.data"));
  ::munmap(there, 8192);
  ::close(other_file);
  open();
}

TEST_F(HeapTest, ASecondOpenIsRefused) {
  open();
  EXPECT_EQ(refusal(), EBUSY);
}

TEST_F(HeapTest, AFileThatCouldNotBecomeAHeapIsLeftEmptyForTheNextTry) {
  pawl_heap_options with = options();
  // No disk here has that, and with on-fail the journal has it from the start.
  with.mapping.journal_size_bytes = std::uint64_t{1} << 40;
  with.mapping.durability = PAWL_DURABILITY_ON_FAIL;
  with.mapping.hold_up_ms = 1000;
  EXPECT_EQ(pawl_heap_open(path_.c_str(), &with), nullptr);
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
  open();
}

TEST_F(HeapTest, WhereNoFileCanBeMadeItIsSaidWhy) {
  EXPECT_EQ(pawl_heap_open("/proc/self/none.heap", nullptr), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(pawl_heap_open(directory_.path().c_str(), nullptr), nullptr);
  EXPECT_EQ(errno, EISDIR);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0555), 0);
  if (::geteuid() != 0) {
    EXPECT_EQ(refusal(), EACCES);
  }
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(HeapTest, AHeapThatWasCutBetweenSegmentsIsRefused) {
  open();
  ASSERT_NE(pawl_heap_malloc(heap_, 20 << 20), nullptr);
  sync();
  close();
  std::filesystem::resize_file(path_, 12 << 20);
  EXPECT_EQ(refusal(), EUCLEAN);
}

TEST_F(HeapTest, StoresIntoTheSegmentTableAndTheListsNeverReachTheFile) {
  open();
  char* const block = static_cast<char*>(pawl_heap_malloc(heap_, 100));
  void* const large = pawl_heap_malloc(heap_, 9 << 20);
  ASSERT_NE(block, nullptr);
  ASSERT_NE(large, nullptr);
  sync();
  const auto information = [&] {
    pawl_heap_information found;
    EXPECT_EQ(pawl_heap_info(heap_, &found), 0);
    return found;
  };
  char* const base = reinterpret_cast<char*>(information().address);
  const auto refused_with = [&](std::size_t offset, char value) {
    char* const at = base + offset;
    ASSERT_NE(*at, value) << offset;
    *at = value;
    EXPECT_EQ(pawl_heap_sync(heap_), -1) << offset;
    EXPECT_EQ(errno, EUCLEAN) << offset;
    ASSERT_EQ(pawl_heap_rollback(heap_), 0);
    ASSERT_EQ(pawl_heap_sync(heap_), 0) << pawl_last_error();
  };
  // Segment 0 is administration, 1 of pages, 2 to 4 the large block, 5 and on are free or not
  // there.
  for (std::size_t segment = 0; segment <= 5; ++segment)
    refused_with(heap_format::kTableOffset + segment, 100);
  refused_with(heap_format::kTableOffset + 1, 0);
  refused_with(heap_format::kTableOffset + 2, 0);
  refused_with(heap_format::kTableOffset + 5, heap_format::kSegmentHugeRest);
  refused_with(heap_format::kTableOffset + heap_format::kSegmentsMax - 1, 1);
  refused_with(heap_format::kSlabListsOffset + 3, 1);
  EXPECT_EQ(pawl_heap_check(heap_, nullptr, nullptr), 0);
}

TEST_F(HeapTest, AShrinkingReallocNeedsNoMemory) {
  pawl_heap_options with = options();
  with.size_bytes_max = PAWL_HEAP_SIZE_MIN;
  open(with);
  void* block = pawl_heap_malloc(heap_, 4000);
  while (pawl_heap_malloc(heap_, 4000) != nullptr) {
  }
  EXPECT_NE(pawl_heap_realloc(heap_, block, 500), nullptr) << pawl_last_error();
}

TEST_F(HeapTest, AHugeBlockShrinksWhereItStands) {
  open();
  char* const block = static_cast<char*>(pawl_heap_malloc(heap_, 30 << 20));
  ASSERT_NE(block, nullptr);
  block[10 << 20] = 'b';
  EXPECT_EQ(pawl_heap_realloc(heap_, block, 11 << 20), block);
  EXPECT_LT(pawl_heap_usable_size(heap_, block), std::size_t{15} << 20);
  EXPECT_EQ(block[10 << 20], 'b');
  pawl_heap_information before;
  ASSERT_EQ(pawl_heap_info(heap_, &before), 0);
  EXPECT_NE(pawl_heap_malloc(heap_, 15 << 20), nullptr);
  pawl_heap_information after;
  ASSERT_EQ(pawl_heap_info(heap_, &after), 0);
  EXPECT_EQ(after.size_bytes, before.size_bytes);
  EXPECT_EQ(pawl_heap_check(heap_, nullptr, nullptr), 0);
  sync();
}

// The loser may have made the file, and must not take it away under the winner.
TEST_F(HeapTest, OfTwoWhoMakeAHeapAtOnceTheWinnerKeepsIt) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    int gate[2];
    ASSERT_EQ(::pipe(gate), 0);
    pid_t children[2];
    for (pid_t& child : children) {
      child = ::fork();
      if (child != 0) continue;
      ::close(gate[1]);
      char opened = 0;
      [[maybe_unused]] const ssize_t end = ::read(gate[0], &opened, 1);
      const pawl_heap_options with = options();
      pawl_heap* const heap = pawl_heap_open(path_.c_str(), &with);
      if (heap == nullptr && errno == EBUSY) ::_exit(1);
      if (heap == nullptr) std::fprintf(stderr, "%s\n", pawl_last_error());
      if (heap == nullptr) ::_exit(2);
      ::_exit(pawl_heap_close(heap) == 0 ? 0 : 3);
    }
    ::close(gate[0]);
    ::close(gate[1]);
    int winners = 0;
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << status;
      winners += WEXITSTATUS(status) == 0 ? 1 : 0;
    }
    ASSERT_GE(winners, 1);
    ASSERT_TRUE(std::filesystem::remove(path_)) << "attempt " << attempt;
  }
}

TEST_F(HeapTest, MisuseIsRefusedAndKeepsTheFileFromIt) {
  open();
  char* const block = static_cast<char*>(pawl_heap_malloc(heap_, 100));
  ASSERT_EQ(pawl_heap_set_root(heap_, block), 0);
  std::strcpy(block, "before");
  sync();
  std::strcpy(block, "after");
  void* const freed = pawl_heap_malloc(heap_, 100);
  ASSERT_EQ(pawl_heap_free(heap_, freed), 0);
  EXPECT_EQ(pawl_heap_free(heap_, freed), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_THAT(pawl_last_error(), HasSubstr("freed before"));
  EXPECT_EQ(pawl_heap_sync(heap_), -1);
  EXPECT_EQ(errno, EUCLEAN);
  EXPECT_THAT(pawl_last_error(), HasSubstr("freed before"));
  ASSERT_EQ(pawl_heap_rollback(heap_), 0);
  EXPECT_STREQ(block, "before");
  sync();
}

TEST_F(HeapTest, EachKindOfMisuseIsFound) {
  open();
  const std::string other_path = directory_ / "other.heap";
  const pawl_heap_options with = options();
  pawl_heap* const other = pawl_heap_open(other_path.c_str(), &with);
  ASSERT_NE(other, nullptr);
  char* const block = static_cast<char*>(pawl_heap_malloc(heap_, 100));
  sync();
  const std::vector<void*> wrong = {
      ::malloc(100), pawl_heap_malloc(other, 100), block + 16, block + 8, block - 64, &heap_};
  for (void* const pointer : wrong) {
    EXPECT_EQ(pawl_heap_free(heap_, pointer), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(pawl_heap_sync(heap_), -1);
    EXPECT_EQ(errno, EUCLEAN);
    ASSERT_EQ(pawl_heap_rollback(heap_), 0);
    EXPECT_EQ(pawl_heap_realloc(heap_, pointer, 200), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(pawl_heap_sync(heap_), -1);
    ASSERT_EQ(pawl_heap_rollback(heap_), 0);
  }
  ::free(wrong[0]);
  EXPECT_EQ(pawl_heap_close(other), 0);
  sync();
}

// A store past the end of a block, into whatever lies there, is found at the latest by the sync.
TEST_F(HeapTest, AnOverrunIntoBookkeepingNeverReachesTheFile) {
  open();
  std::vector<char*> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(static_cast<char*>(pawl_heap_malloc(heap_, 100)));
  ASSERT_EQ(pawl_heap_set_root(heap_, blocks[0]), 0);
  sync();
  std::sort(blocks.begin(), blocks.end());
  std::memset(blocks[10], 'o', 5'000);
  EXPECT_EQ(pawl_heap_sync(heap_), -1);
  EXPECT_EQ(errno, EUCLEAN);
  EXPECT_FALSE(faults_of(heap_, pawl_heap_check).empty());
  reopen();
  EXPECT_TRUE(faults_of(heap_, pawl_heap_check).empty());
  EXPECT_EQ(pawl_heap_root(heap_), blocks[0]);
}

TEST_F(HeapTest, NoHeaderReachesTheFileOverwritten) {
  open();
  char* const block = static_cast<char*>(pawl_heap_malloc(heap_, 100));
  void* const run = pawl_heap_malloc(heap_, 100'000);
  void* const huge = pawl_heap_malloc(heap_, 10'000'000);
  ASSERT_EQ(pawl_heap_set_root(heap_, block), 0);
  ASSERT_EQ(pawl_heap_set_named_root(heap_, "run", run, 0), 0);
  ASSERT_EQ(pawl_heap_set_named_root(heap_, "huge", huge, 0), 0);
  sync();
  pawl_heap_information information;
  ASSERT_EQ(pawl_heap_info(heap_, &information), 0);
  char* const base = reinterpret_cast<char*>(information.address);
  // Identity, root, a named root's address, a segment of pages, a huge block's segment, a slab.
  const std::vector<char*> targets = {
      base + 16,
      base + heap_format::kRootOffset + 6,
      base + heap_format::kNamedRootsOffset + 48 + 6,
      base + heap_format::kSegmentBytes + 70,
      static_cast<char*>(huge) - kPageBytes + 16,
      block - 64 + 20,
  };
  for (char* const target : targets) {
    *target ^= 0x55;
    EXPECT_EQ(pawl_heap_sync(heap_), -1) << target - base;
    EXPECT_EQ(errno, EUCLEAN);
    EXPECT_FALSE(faults_of(heap_, pawl_heap_check).empty()) << target - base;
    ASSERT_EQ(pawl_heap_rollback(heap_), 0);
    EXPECT_TRUE(faults_of(heap_, pawl_heap_check).empty());
  }
  sync();
}

// Pages of a slab that a segment's header calls free were given away while a block lay in them, and
// realloc copied the block onto itself.
TEST_F(HeapTest, ReallocWasGivenPagesOfTheBlockThatItMoved) {
  open();
  char* const block = static_cast<char*>(pawl_heap_malloc(heap_, 7'000));
  sync();
  pawl_heap_information information;
  ASSERT_EQ(pawl_heap_info(heap_, &information), 0);
  auto* const header = reinterpret_cast<heap_format::SegmentHeader*>(information.address +
                                                                     heap_format::kSegmentBytes);
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(block) - information.address;
  const std::uint64_t page = offset / kPageBytes % heap_format::kSegmentPages;
  for (const std::uint64_t rest : {page + 1, page + 2}) {
    ASSERT_EQ(header->pages[rest].kind, heap_format::PageKind::slab_rest);
    header->pages[rest] = {heap_format::PageKind::free, 0};
  }
  seal(*header);
  EXPECT_EQ(pawl_heap_realloc(heap_, block, 8'000), nullptr);
  EXPECT_EQ(errno, EUCLEAN);
  EXPECT_THAT(pawl_last_error(), HasSubstr("bytes of another"));
  EXPECT_EQ(pawl_heap_sync(heap_), -1);
  ASSERT_EQ(pawl_heap_rollback(heap_), 0);
  EXPECT_TRUE(faults_of(heap_, pawl_heap_check).empty());
}

TEST_F(HeapTest, BlocksKeepTheirContentThroughRealloc) {
  open();
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::size_t size = random() % 20'000;
    unsigned char* block = static_cast<unsigned char*>(pawl_heap_realloc(heap_, nullptr, size));
    for (std::size_t i = 0; i < size; ++i) block[i] = static_cast<unsigned char>(i * 7);
    for (int step = 0; step < 5; ++step) {
      const std::size_t next = random() % (step == 4 ? 6'000'000 : 20'000);
      block = static_cast<unsigned char*>(pawl_heap_realloc(heap_, block, next));
      ASSERT_NE(block, nullptr);
      ASSERT_GE(pawl_heap_usable_size(heap_, block), next);
      for (std::size_t i = 0; i < std::min(size, next); ++i)
        ASSERT_EQ(block[i], static_cast<unsigned char>(i * 7));
      for (std::size_t i = size; i < next; ++i) block[i] = static_cast<unsigned char>(i * 7);
      size = next;
    }
    ASSERT_EQ(pawl_heap_free(heap_, block), 0);
  }
  pawl_heap_information information;
  ASSERT_EQ(pawl_heap_info(heap_, &information), 0);
  EXPECT_EQ(information.blocks_used, 0u);
}

TEST_F(HeapTest, CallocClearsWhatWasUsedBefore) {
  open();
  for (const std::size_t size : {100u, 5'000u, 50'000u, 3'000'000u}) {
    void* const dirty = pawl_heap_malloc(heap_, size);
    std::memset(dirty, 'd', size);
    ASSERT_EQ(pawl_heap_free(heap_, dirty), 0);
    const char* const clean = static_cast<char*>(pawl_heap_calloc(heap_, size / 4, 4));
    ASSERT_NE(clean, nullptr);
    EXPECT_TRUE(std::all_of(clean, clean + size / 4 * 4, [](char byte) { return byte == 0; }));
  }
  EXPECT_EQ(pawl_heap_calloc(heap_, SIZE_MAX / 2, 4), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(pawl_heap_aligned_alloc(heap_, 48, 100), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(pawl_heap_aligned_alloc(heap_, PAWL_HEAP_ALIGNMENT_MAX * 2, 100), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(pawl_heap_free(heap_, nullptr), 0);
  void* const nothing = pawl_heap_malloc(heap_, 0);
  EXPECT_NE(nothing, nullptr);
  EXPECT_NE(nothing, pawl_heap_malloc(heap_, 0));
}

TEST_F(HeapTest, InformationAddsUp) {
  open();
  std::vector<void*> blocks;
  for (int i = 0; i < 1'000; ++i) blocks.push_back(pawl_heap_malloc(heap_, 100));
  blocks.push_back(pawl_heap_malloc(heap_, 20'000));
  blocks.push_back(pawl_heap_malloc(heap_, 9'000'000));
  for (int i = 0; i < 500; ++i) ASSERT_EQ(pawl_heap_free(heap_, blocks[i * 2]), 0);
  ASSERT_EQ(pawl_heap_set_named_root(heap_, "a", blocks[1], 0), 0);
  pawl_heap_information information;
  ASSERT_EQ(pawl_heap_info(heap_, &information), 0);
  EXPECT_EQ(information.blocks_used, 502u);
  EXPECT_EQ(information.large_blocks_used, 2u);
  EXPECT_EQ(information.named_roots, 1u);
  EXPECT_EQ(information.bytes_used + information.bytes_free + information.bytes_overhead,
            information.size_bytes);
  std::uint64_t in_slabs = 0;
  for (std::uint32_t i = 0; i < information.size_classes; ++i)
    in_slabs += information.classes[i].blocks_used;
  EXPECT_EQ(in_slabs, 500u);
  EXPECT_GT(information.free_block_bytes_max, 0u);
  void* const largest = pawl_heap_malloc(heap_, information.free_block_bytes_max);
  EXPECT_NE(largest, nullptr);
  pawl_heap_information after;
  ASSERT_EQ(pawl_heap_info(heap_, &after), 0);
  EXPECT_EQ(after.size_bytes, information.size_bytes) << "the largest free block needed growth";
}

TEST_F(HeapTest, ThreadsAllocateAndFreeAtOnce) {
  open();
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<std::vector<std::pair<unsigned char*, std::size_t>>> kept(kThreads);
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(static_cast<unsigned>(number));
      auto& own = kept[number];
      for (int step = 0; step < 5'000; ++step) {
        if (own.size() < 100 || random() % 2 == 0) {
          const std::size_t size = 1 + random() % 3'000;
          auto* const block = static_cast<unsigned char*>(pawl_heap_malloc(heap_, size));
          ASSERT_NE(block, nullptr);
          std::memset(block, number + 1, size);
          own.emplace_back(block, size);
        } else {
          std::swap(own[random() % own.size()], own.back());
          ASSERT_EQ(pawl_heap_free(heap_, own.back().first), 0);
          own.pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int number = 0; number < kThreads; ++number) {
    for (const auto& [block, size] : kept[number]) {
      ASSERT_TRUE(
          std::all_of(block, block + size, [&](unsigned char byte) { return byte == number + 1; }));
    }
  }
  EXPECT_TRUE(faults_of(heap_, pawl_heap_check).empty());
  sync();
}

TEST_F(HeapTest, AForkedChildReadsAndChangesNothing) {
  open();
  char* const block = static_cast<char*>(pawl_heap_malloc(heap_, 100));
  std::strcpy(block, "parent's");
  sync();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool right = std::strcmp(block, "parent's") == 0 &&
                       pawl_heap_malloc(heap_, 10) == nullptr && errno == EPERM &&
                       pawl_heap_free(heap_, block) == -1 && errno == EPERM &&
                       pawl_heap_sync(heap_) == -1 && errno == EPERM;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  sync();
}

TEST_F(HeapTest, VerifyFindsPointersOutOfTheHeap) {
  open();
  void** const block = static_cast<void**>(pawl_heap_calloc(heap_, 10, sizeof(void*)));
  block[1] = block;
  block[2] = block + 3;
  EXPECT_TRUE(faults_of(heap_, pawl_heap_verify).empty());
  int on_the_stack = 0;
  block[3] = &on_the_stack;
  block[4] = ::malloc(10);
  block[5] = reinterpret_cast<void*>(&pawl_heap_open);
  const std::vector<std::string> strays = faults_of(heap_, pawl_heap_verify);
  ASSERT_EQ(strays.size(), 3u);
  EXPECT_THAT(strays[0], HasSubstr("at its byte 24"));
  ::free(block[4]);
}

TEST_F(HeapTest, AVerifyingSyncRefusesPointersOutOfTheHeap) {
  pawl_heap_options with = options();
  with.verify = 1;
  open(with);
  void** const block = static_cast<void**>(pawl_heap_calloc(heap_, 1, sizeof(void*)));
  sync();
  *block = &with;
  EXPECT_EQ(pawl_heap_sync(heap_), -1);
  EXPECT_EQ(errno, EFAULT);
  *block = nullptr;
  sync();
}

TEST_F(HeapTest, HeapsAreFoundByAddressAndTheFirstIsTheDefault) {
  EXPECT_EQ(pawl_heap_default(), nullptr);
  open();
  const std::string other_path = directory_ / "other.heap";
  const pawl_heap_options with = options();
  pawl_heap* const other = pawl_heap_open(other_path.c_str(), &with);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(pawl_heap_of(pawl_heap_malloc(other, 10)), other);
  EXPECT_EQ(pawl_heap_of(pawl_heap_malloc(heap_, 10)), heap_);
  EXPECT_EQ(pawl_heap_of(&with), nullptr);
  EXPECT_EQ(pawl_heap_default(), heap_);
  ASSERT_EQ(pawl_heap_set_default(other), 0);
  EXPECT_EQ(pawl_heap_default(), other);
  ASSERT_EQ(pawl_heap_close(other), 0);
  EXPECT_EQ(pawl_heap_default(), heap_);
  close();
  EXPECT_EQ(pawl_heap_default(), nullptr);
}

TEST_F(HeapTest, NullHandlesAndArgumentsAreRefused) {
  EXPECT_EQ(pawl_heap_open(nullptr, nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(pawl_heap_malloc(nullptr, 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(pawl_heap_close(nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  pawl_heap_options with{};
  EXPECT_EQ(pawl_heap_open(path_.c_str(), &with), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// One small allocation changes one line of bookkeeping, on the page of the block.
TEST_F(HeapTest, AnAllocationDirtiesOneLineOfBookkeeping) {
  open();
  for (int i = 0; i < 5; ++i) pawl_heap_malloc(heap_, 100);
  sync();
  pawl_statistics before;
  ASSERT_EQ(pawl_heap_stats(heap_, &before), 0);
  ASSERT_NE(pawl_heap_malloc(heap_, 100), nullptr);
  sync();
  pawl_statistics after;
  ASSERT_EQ(pawl_heap_stats(heap_, &after), 0);
  EXPECT_EQ(after.bytes_changed - before.bytes_changed, 64u);
  EXPECT_EQ(after.changed_pages - before.changed_pages, 1u);
}

}  // namespace
}  // namespace pawl
