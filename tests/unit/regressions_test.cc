// Schedules and failures that once broke the core, each by the name of what went wrong.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "journal/checkpointer.h"
#include "journal/committed_image.h"
#include "mapping/mapping.h"
#include "mapping/statistics.h"
#include "medium/block_medium.h"
#include "pawl/pawl.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"
#include "support/watched_medium.h"
#include "track/stated_stores.h"
#include "track/tracker.h"

namespace {
// The next page buffer cannot be had: the memory ran out.
std::atomic<bool> no_memory_for_pages{false};
}  // namespace

void* operator new(std::size_t size, std::align_val_t alignment) {
  if (no_memory_for_pages.load()) throw std::bad_alloc();
  const auto unit = static_cast<std::size_t>(alignment);
  void* const memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
// A sanitizer's own would not be released by what follows.
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return operator new(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace pawl {
namespace {

using test::Act;
using test::Event;
using test::Watch;
using test::Which;

using Hook = Watch::Judge;

std::shared_ptr<Watch> watch_with(Hook hook) {
  auto watch = std::make_shared<Watch>();
  watch->judge_with(std::move(hook));
  return watch;
}

Result<std::unique_ptr<Mapping>> open_hooked(const std::string& path, const Options& options,
                                             Hook hook) {
  return test::try_open(path, options, watch_with(std::move(hook)));
}

void wait_until(const std::function<bool()>& is_so) {
  for (int i = 0; i < 5000 && !is_so(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class Regressions : public testing::Test {
 protected:
  std::unique_ptr<Medium> medium() { return std::move(open_block_medium(path_, false).value()); }
  static std::string content(const std::string& letter, std::size_t count) {
    return std::string(count, letter[0]);
  }
  static char* show(Mapping& mapping, std::size_t pages) {
    auto window = mapping.map_window(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
    EXPECT_TRUE(window.ok()) << window.status().text();
    return window.value();
  }
  char byte_after_reopening(std::uint64_t offset) {
    auto opened = test::try_open(path_, test::options_for(ApplyChoice::async));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    if (!opened.ok()) return '!';
    char byte = '?';
    EXPECT_TRUE(opened.value()->read(offset, std::as_writable_bytes(std::span(&byte, 1))).ok());
    return byte;
  }
  static std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  void patch(CommittedImage& image, std::uint64_t page, std::uint64_t at, const std::string& text,
             std::uint64_t sequence) {
    auto committed = image.page(page);
    ASSERT_TRUE(committed.ok());
    image.patch(page, committed.value(), at, bytes_of(text), sequence);
  }
  char byte_of(CommittedImage& image, std::uint64_t offset) {
    auto committed = image.page(offset / kPageBytes);
    return static_cast<char>(committed.value()->bytes[offset % kPageBytes]);
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
};

// 1. The base refuses a write of a large commit after its record is durable.
TEST_F(Regressions, ADirectCommitThatCouldNotBeAppliedKeepsItsRecord) {
  constexpr std::size_t kPages = 3000;
  test::write_file(path_, content("a", kPages * kPageBytes));
  std::atomic<int> writes_until_failure{-1};
  auto opened =
      open_hooked(path_, test::options_for(ApplyChoice::async), [&](const Event& event) -> Status {
        if (event.which == Which::base && event.act == Act::write &&
            writes_until_failure.load() >= 0 && writes_until_failure.fetch_sub(1) == 0)
          return Status::failure(EIO, "the device took no bytes");
        return {};
      });
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  char* const bytes = show(*opened.value(), kPages);
  std::memset(bytes, 'b', kPages * kPageBytes);
  writes_until_failure = 2;
  const Status committed = opened.value()->commit(bytes, kPages * kPageBytes);
  ASSERT_TRUE(committed.ok()) << "it is durable: " << committed.text();
  opened.value().reset();  // the process dies
  EXPECT_EQ(byte_after_reopening(0), 'b');
  EXPECT_EQ(byte_after_reopening(kPages * kPageBytes - 1), 'b');
}

// Its write and its flush said that all was done, and something wrote over it meanwhile.
TEST_F(Regressions, ADirectCommitThatTheJournalDoesNotHoldWasAcknowledged) {
  constexpr std::size_t kPages = 3000;
  test::write_file(path_, content("a", kPages * kPageBytes));
  std::atomic<bool> loses_the_record{false};
  auto opened =
      open_hooked(path_, test::options_for(ApplyChoice::async), [&](const Event& event) -> Status {
        if (event.which != Which::journal || event.act != Act::flush || !loses_the_record)
          return {};
        const std::string found = test::read_file(path_ + ".pawl");
        if (found.compare(journal::kAreaStart, 4, "PREC") != 0) return {};
        const std::string zeros(kPageBytes, '\0');
        const int journal = ::open((path_ + ".pawl").c_str(), O_WRONLY | O_CLOEXEC);
        EXPECT_EQ(::pwrite(journal, zeros.data(), zeros.size(), journal::kAreaStart),
                  static_cast<ssize_t>(zeros.size()));
        ::close(journal);
        loses_the_record = false;
        return {};
      });
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  char* const bytes = show(*opened.value(), kPages);
  std::memset(bytes, 'b', kPages * kPageBytes);
  loses_the_record = true;
  const Status committed = opened.value()->commit(bytes, kPages * kPageBytes);
  EXPECT_FALSE(loses_the_record);
  EXPECT_EQ(committed.error_number(), EIO) << "it is acknowledged, and nowhere";
  opened.value().reset();
  EXPECT_EQ(byte_after_reopening(0), 'a');
}

// 2. A checkpoint of the background between the record's flush and the last byte applied.
TEST_F(Regressions, ACheckpointDuringADirectCommitDoesNotDropItsRecord) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  auto owner = medium();
  CommittedImage image(owner->base(), 8 * kPageBytes, 0);
  ASSERT_TRUE(image.begin_direct(journal::kNoTruncation, 8 * kPageBytes, 1).ok());
  ASSERT_TRUE(image.direct(0, bytes_of(content("b", kPageBytes))).ok());
  ASSERT_TRUE(image.apply().ok());
  EXPECT_EQ(image.applied_sequence(), 0u) << "the rest of record 1 stands only in the journal";
}

// A page holds a durable change and one of a batch that is still queued: it cannot be applied yet,
// and so the durable change stands only in its record.
TEST_F(Regressions, ARecordWhosePageWaitsForALaterBatchIsKept) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  auto owner = medium();
  CommittedImage image(owner->base(), 8 * kPageBytes, 0);
  patch(image, 3, 0, "one", 1);
  image.durable(1);
  patch(image, 3, 100, "two", 2);
  ASSERT_TRUE(image.apply().ok());
  EXPECT_EQ(image.applied_sequence(), 0u) << "record 1 would be dropped, and is not in the base";
  image.durable(2);
  ASSERT_TRUE(image.apply().ok());
  EXPECT_EQ(image.applied_sequence(), 2u);
}

// A queued truncation takes a page off the overlay whose durable change is not in the base yet:
// only its record has it, should the truncation never become durable.
TEST_F(Regressions, ARecordWhosePageAQueuedTruncationTookIsKept) {
  test::write_file(path_, content("a", 10 * kPageBytes));
  auto owner = medium();
  CommittedImage image(owner->base(), 10 * kPageBytes, 0);
  patch(image, 8, 0, "one", 1);
  image.durable(1);
  image.truncate(5 * kPageBytes, 2);
  image.set_size(5 * kPageBytes, 2);
  ASSERT_TRUE(image.apply().ok());
  EXPECT_EQ(image.applied_sequence(), 0u) << "record 1 would be dropped, and is not in the base";
  image.durable(2);
  ASSERT_TRUE(image.apply().ok());
  EXPECT_EQ(image.applied_sequence(), 2u);
  EXPECT_EQ(test::read_file(path_).size(), 5 * kPageBytes);
}

// 3. While one truncation is applied a newer one is defined.
TEST_F(Regressions, ATruncationThatMeetsANewerOneDoesNotCutLaterPagesAgain) {
  test::write_file(path_, content("a", 10 * kPageBytes));
  auto owner = medium();
  std::function<void()> meanwhile;
  const auto base =
      test::watched_file(owner->base(), Which::base, watch_with([&](const Event& event) -> Status {
                           if (event.act == Act::write && meanwhile) std::exchange(meanwhile, {})();
                           return {};
                         }));
  CommittedImage image(*base, 10 * kPageBytes, 0);
  // Commit 1: cut to nothing, grown to ten pages again, page 5 written.
  image.truncate(0, 1);
  image.set_size(10 * kPageBytes, 1);
  patch(image, 5, 0, "five", 1);
  image.durable(1);
  // Commit 2, while the background applies commit 1: the last page goes.
  meanwhile = [&] {
    image.truncate(9 * kPageBytes, 2);
    image.set_size(9 * kPageBytes, 2);
  };
  ASSERT_TRUE(image.apply().ok());
  EXPECT_EQ(byte_of(image, 5 * kPageBytes), 'f') << "the committed image lost page 5";
  image.durable(2);
  ASSERT_TRUE(image.apply().ok());
  EXPECT_EQ(image.applied_sequence(), 2u);
  EXPECT_EQ(test::read_file(path_).substr(5 * kPageBytes, 4), "five") << "the base lost page 5";
}

// 4. A page that a pending truncation cuts in the middle is applied before the truncation is.
TEST_F(Regressions, APageThatAWaitingTruncationCutsWaitsForIt) {
  test::write_file(path_, content("a", 10 * kPageBytes));
  std::atomic<bool> hold_journal{false};
  std::atomic<int> applied{0};
  Options options = test::options_for(ApplyChoice::async);
  options.apply_threshold_pages = 3;
  auto opened = open_hooked(path_, options, [&](const Event& event) -> Status {
    if (event.which == Which::journal && event.act == Act::flush && hold_journal.load())
      wait_until([&] { return !hold_journal.load(); });
    if (event.which == Which::base && event.act == Act::write) applied += 1;
    return {};
  });
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Mapping& mapping = *opened.value();
  char* const bytes = show(mapping, 64);
  // Commit 1: cut to 5000, grown to five pages, a byte behind the cut.
  ASSERT_TRUE(mapping.truncate(5000).ok());
  ASSERT_TRUE(mapping.truncate(5 * kPageBytes).ok());
  bytes[6000] = 'x';
  ASSERT_TRUE(mapping.commit(bytes, 64 * kPageBytes).ok());
  // Commit 2, queued: cut to three pages, grown to nine, enough written to wake the background.
  hold_journal = true;
  ASSERT_TRUE(mapping.truncate(3 * kPageBytes).ok());
  ASSERT_TRUE(mapping.truncate(9 * kPageBytes).ok());
  for (int page = 4; page < 9; ++page) bytes[page * 4096] = 'y';
  ASSERT_TRUE(mapping.commit_async(bytes, 64 * kPageBytes).ok());
  for (int i = 0; i < 300 && applied.load() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  hold_journal = false;
  ASSERT_TRUE(mapping.wait().ok());
  ASSERT_TRUE(mapping.close().ok());
  EXPECT_EQ(test::read_file(path_)[6000], 'x') << "committed by record 1, lost after a clean close";
}

// 5. The background's flush of the base fails while a commit waits for journal space.
TEST_F(Regressions, AFailedFlushOfTheBaseIsNotRepeatedByTheCommitThatWaits) {
  constexpr std::size_t kPages = 64;
  test::write_file(path_, content("a", kPages * kPageBytes));
  Options options = test::options_for(ApplyChoice::async);
  options.journal_size_bytes = kJournalSizeMin;
  std::atomic<bool> armed{false};
  std::atomic<int> flushes{0};
  std::atomic<int> believed{0};
  auto opened = open_hooked(path_, options, [&](const Event& event) -> Status {
    if (!armed.load() || event.which != Which::base || event.act != Act::flush) return {};
    if (flushes.fetch_add(1) == 0) {
      // Mostly the background's; long enough for the commit to wait behind it.
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return Status::failure(EIO, "the device lost bytes");
    }
    believed += 1;
    return {};
  });
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Mapping& mapping = *opened.value();
  char* const bytes = show(mapping, kPages);
  armed = true;
  Status status;
  for (int i = 0; i < 40 && status.ok(); ++i) {
    bytes[(static_cast<std::size_t>(i) % kPages) * kPageBytes] = 'b';
    status = mapping.commit(bytes, kPages * kPageBytes);
  }
  EXPECT_GE(flushes.load(), 1);
  EXPECT_EQ(believed.load(), 0) << "the base was flushed again, and its records were dropped";
  EXPECT_EQ(status.error_number(), EIO);
}

// 6. A queued batch's flush fails while a commit is on its way to its own.
TEST_F(Regressions, ACommitBehindABatchThatFailedIsNotAcknowledged) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  std::atomic<bool> armed{false};
  std::atomic<bool> fail_now{false};
  std::atomic<bool> failed{false};
  const auto program = std::this_thread::get_id();
  auto opened =
      open_hooked(path_, test::options_for(ApplyChoice::async), [&](const Event& event) -> Status {
        if (event.which == Which::journal && std::this_thread::get_id() != program &&
            event.act == Act::write) {
          wait_until([&] { return fail_now.load(); });
          failed = true;
          return Status::failure(EIO, "the device lost bytes");
        }
        if (armed.load() && event.which == Which::base && event.act == Act::read &&
            std::this_thread::get_id() == program) {
          fail_now = true;
          wait_until([&] { return failed.load(); });
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        return {};
      });
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Mapping& mapping = *opened.value();
  char* const bytes = show(mapping, 8);
  bytes[0] = 'b';
  ASSERT_TRUE(mapping.commit_async(bytes, kPageBytes).ok());
  armed = true;
  bytes[kPageBytes] = 'c';
  const Status committed = mapping.commit(bytes + kPageBytes, kPageBytes);
  ASSERT_TRUE(failed.load());
  EXPECT_FALSE(committed.ok());
  opened.value().reset();
  if (committed.ok()) {
    EXPECT_EQ(byte_after_reopening(kPageBytes), 'c') << "acknowledged, and lost";
  }
}

// 7. A commit that finds the journal full: the checkpoint punches what it had just reserved.
TEST_F(Regressions, ACheckpointDoesNotGiveAwayTheSpaceThatTheCommitInHandReserved) {
  constexpr std::uint64_t kPages = 64;
  test::write_file(path_, content("a", kPages * kPageBytes));
  Options options = test::options_for(ApplyChoice::async);
  options.journal_size_bytes = kJournalSizeMin;  // 14 blocks of records
  auto watch = std::make_shared<test::Watch>();
  test::Opened mapping(path_, options, watch);
  ASSERT_TRUE(mapping->truncate(0).ok());
  ASSERT_TRUE(mapping->truncate(kPages * kPageBytes).ok());
  ASSERT_TRUE(mapping.commit().ok());
  watch->take_events();
  // Thirteen pages take the whole ring: the commit waits for a checkpoint, which cuts the base.
  for (std::uint64_t page = 40; page < 53; ++page)
    std::memset(mapping.bytes() + page * kPageBytes, 'y', kPageBytes);
  ASSERT_TRUE(mapping.commit().ok());
  mapping.crash();
  // All of the file has space to begin with; zeroing in place keeps it.
  bool has_space[kPages];
  std::fill(std::begin(has_space), std::end(has_space), true);
  for (const Event& event : watch->take_events()) {
    if (event.which != Which::base) continue;
    const std::uint64_t first = (event.offset + kPageBytes - 1) / kPageBytes;
    const std::uint64_t end = (event.offset + event.length) / kPageBytes;
    for (std::uint64_t page = first; page < std::min(end, kPages); ++page) {
      if (event.act == Act::reserve || event.act == Act::write) has_space[page] = true;
      if (event.act == Act::punch) has_space[page] = false;
    }
    if (event.act == Act::resize)
      for (std::uint64_t page = first; page < kPages; ++page) has_space[page] = false;
  }
  for (std::uint64_t page = 40; page < 53; ++page)
    EXPECT_TRUE(has_space[page]) << "page " << page << " was committed without space in the base";
}

// 8. Memory runs out in the middle of a commit.
TEST_F(Regressions, ACommitWithoutMemoryKeepsItsPagesForTheNext) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  test::Opened mapping(path_, test::options_for(ApplyChoice::async));
  mapping.bytes()[0] = 'b';
  no_memory_for_pages = true;
  bool failed = false;
  try {
    failed = !mapping.commit().ok();
  } catch (const std::bad_alloc&) {
    failed = true;  // ENOMEM at the C border
  }
  no_memory_for_pages = false;
  ASSERT_TRUE(failed);
  ASSERT_TRUE(mapping.commit().ok());
  mapping.crash();
  EXPECT_EQ(byte_after_reopening(0), 'b') << "the second msync said that it is durable";
}

// 9. A rollback that cannot be done.
TEST_F(Regressions, ARollbackThatFailedKeepsItsPagesForTheNextCommit) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  test::Opened mapping(path_, test::options_for(ApplyChoice::async));
  mapping.bytes()[0] = 'b';
  if (::mlock(mapping.bytes(), kPageBytes) != 0) GTEST_SKIP() << "mlock is not allowed here";
  const Status back = mapping->roll_back(mapping.bytes(), kPageBytes);
  ::munlock(mapping.bytes(), kPageBytes);
  const char shown = mapping.bytes()[0];
  if (back.ok()) {
    EXPECT_EQ(shown, 'a');
    return;
  }
  ASSERT_TRUE(mapping.commit().ok());
  mapping.crash();
  EXPECT_EQ(byte_after_reopening(0), shown) << "msync said that what memory shows is durable";
}

// 10. A rollback of new pages in a window that may only be read by now.
TEST_F(Regressions, ARollbackOfGrowthUnderReadProtectionDoesNotFault) {
  test::write_file(path_, content("a", kPageBytes));
  EXPECT_EXIT(
      {
        test::Opened mapping(path_, test::options_for(ApplyChoice::async));
        (void)mapping->truncate(4 * kPageBytes);
        mapping.bytes()[2 * kPageBytes] = 'b';
        const bool ready = mapping
                               ->protect_window(mapping.bytes(),
                                                test::Opened::kWindowPages * kPageBytes, PROT_READ)
                               .ok();
        const bool back = mapping->roll_back(mapping.bytes() + 2 * kPageBytes, kPageBytes).ok();
        std::_Exit(ready && back && mapping.bytes()[2 * kPageBytes] == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// 11. Another process maps the file between the look for its journal and the look at its mark.
TEST_F(Regressions, AWriterThatJustBeganIsNotTakenForACrash) {
  test::write_file(path_, content("a", kPageBytes));
  std::unique_ptr<Mapping> other;
  const auto watch = std::make_shared<Watch>();
  watch->before_mark([&] {
    other = std::move(test::try_open(path_, test::options_for(ApplyChoice::async)).value());
  });
  const auto late = test::watched_medium(medium(), watch);
  const auto recovered = recover(*late, true);  // pawl recover --accept-loss
  ASSERT_NE(other, nullptr);
  EXPECT_FALSE(recovered.ok());
  auto after = medium();
  EXPECT_TRUE(after->mark().value().has_value()) << "the mark of a living writer was cleared";
}

// The file holds what looks like a record of a later life of its journal, and stands in the journal
// at the start of a block.
TEST_F(Regressions, ContentThatLooksLikeARecordIsNoEvidenceOfLoss) {
  test::write_file(path_, content("a", 2 * kPageBytes));
  EXPECT_EXIT(
      {
        test::Opened mapping(path_, test::options_for(ApplyChoice::async));
        std::memset(mapping.bytes(), 'b', 2 * kPageBytes);
        journal::RecordHeader made_up;
        made_up.header_generation = 1 << 30;
        made_up.header_crc32c = journal::record_header_checksum(made_up);
        std::memcpy(mapping.bytes() + journal::kBlockBytes - sizeof(journal::RecordHeader) -
                        sizeof(journal::RangeHeader),
                    &made_up, sizeof made_up);
        std::_Exit(mapping->commit(mapping.bytes(), 2 * kPageBytes).ok() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  const auto opened = test::try_open(path_, test::options_for(ApplyChoice::async));
  EXPECT_TRUE(opened.ok()) << opened.status().text();
}

// 13. The mapping is destroyed while its background fails.
TEST_F(Regressions, AFailureDuringDestructionIsWrittenIntoWhatStillExists) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  std::atomic<bool> writing{false};
  std::atomic<bool> go{false};
  auto opened =
      open_hooked(path_, test::options_for(ApplyChoice::async), [&](const Event& event) -> Status {
        if (event.which == Which::journal && event.act == Act::write && event.offset >= 8192) {
          writing = true;
          wait_until([&] { return go.load(); });
          return Status::failure(EIO, content("x", 100));
        }
        return {};
      });
  ASSERT_TRUE(opened.ok());
  char* const bytes = show(*opened.value(), 8);
  bytes[0] = 'b';
  ASSERT_TRUE(opened.value()->commit_async(bytes, kPageBytes).ok());
  wait_until([&] { return writing.load(); });
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    go = true;
  });
  opened.value().reset();
  later.join();
}

// 14. The power goes while a journal left by a crash is made larger: of what was not flushed the
// header stands, and the new length does not.
TEST_F(Regressions, AJournalThatWasBeingEnlargedIsStillReadable) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  Options options = test::options_for(ApplyChoice::async);
  options.journal_size_bytes = kJournalSizeMin;
  {
    test::Opened mapping(path_, options);
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    mapping.crash();
  }
  bool length_is_durable = false;
  bool header_written = false;
  options.journal_size_bytes = 2 * kJournalSizeMin;
  auto opened = open_hooked(path_, options, [&](const Event& event) -> Status {
    if (event.which != Which::journal) return {};
    if (event.act == Act::write && event.offset < journal::kAreaStart) header_written = true;
    if (event.act == Act::flush && header_written) return Status::failure(EIO, "the power is gone");
    if (event.act == Act::flush) length_is_durable = true;
    return {};
  });
  ASSERT_FALSE(opened.ok());
  if (!length_is_durable) {
    ASSERT_EQ(::truncate((path_ + ".pawl").c_str(), kJournalSizeMin), 0);
  }
  EXPECT_EQ(byte_after_reopening(0), 'b');
}

// 15. A window that may not be read by now is committed.
TEST_F(Regressions, ACommitUnderProtNoneDoesNotFault) {
  test::write_file(path_, content("a", 4 * kPageBytes));
  EXPECT_EXIT(
      {
        test::Opened mapping(path_, test::options_for(ApplyChoice::async));
        mapping.bytes()[0] = 'b';
        const bool ready = mapping
                               ->protect_window(mapping.bytes(),
                                                test::Opened::kWindowPages * kPageBytes, PROT_NONE)
                               .ok();
        std::_Exit(ready && mapping.commit().ok() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// 16. A whole rollback maps the window anew.
TEST_F(Regressions, ARollbackKeepsTheProtectionOfEachPage) {
  test::write_file(path_, content("a", 4 * kPageBytes));
  EXPECT_EXIT(
      {
        test::Opened mapping(path_, test::options_for(ApplyChoice::async));
        constexpr std::size_t kWindow = test::Opened::kWindowPages * kPageBytes;
        bool ready = mapping->protect_window(mapping.bytes(), kWindow, PROT_READ).ok();
        ready = ready &&
                mapping->protect_window(mapping.bytes(), kPageBytes, PROT_READ | PROT_WRITE).ok();
        mapping.bytes()[0] = 'b';
        ready = ready && mapping->roll_back(mapping.bytes(), kWindow).ok();
        mapping.bytes()[0] = 'c';  // is writable still
        std::_Exit(ready ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// 17. The file system's blocks are smaller than pages, and a cut leaves a page without its last.
TEST_F(Regressions, ACutWithinAPageGivesTheSpaceOfItsRestAway) {
  test::write_file(path_, content("a", 2 * kPageBytes));
  auto watch = std::make_shared<test::Watch>();
  test::Opened mapping(path_, test::options_for(ApplyChoice::eager), watch);
  ASSERT_TRUE(mapping->truncate(kPageBytes + 100).ok());
  ASSERT_TRUE(mapping.commit().ok());
  ASSERT_TRUE(mapping->truncate(2 * kPageBytes).ok());
  watch->take_events();
  std::memset(mapping.bytes() + kPageBytes, 'b', kPageBytes);
  ASSERT_TRUE(mapping.commit().ok());
  bool has_space = false;
  for (const Event& event : watch->take_events()) {
    if (event.which != Which::base || event.offset + event.length < 2 * kPageBytes) continue;
    if (event.act == Act::reserve) has_space = event.offset <= kPageBytes;
    if (event.act == Act::write) break;
  }
  EXPECT_TRUE(has_space) << "the page was committed without space in the base";
}

// Space that went with a cut is reserved again for what is defined behind it; where the disk was
// full just then, at the next try.
TEST_F(Regressions, SpaceThatACutCouldNotReserveAgainIsReservedByTheNextTry) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  auto on_disk = medium();
  bool full = true;
  bool has_space = false;
  const auto base =
      test::watched_file(on_disk->base(), Which::base, watch_with([&](const Event& event) {
                           if (event.act != Act::reserve) return Status{};
                           if (full) return Status::failure(ENOSPC, "full");
                           has_space = true;
                           return Status{};
                         }));
  CommittedImage image(*base, 8 * kPageBytes, 0);
  ASSERT_TRUE(image.learn_space().ok());
  image.truncate(kPageBytes, 1);
  image.set_size(kPageBytes, 1);
  image.durable(1);
  // Queued, and not durable yet.
  ASSERT_TRUE(image.reserve_space(5 * kPageBytes, kPageBytes).ok());
  image.set_size(6 * kPageBytes, 2);
  patch(image, 5, 0, "b", 2);
  image.end_commit();
  EXPECT_EQ(image.apply().error_number(), ENOSPC);
  full = false;
  EXPECT_TRUE(image.apply().ok());
  EXPECT_TRUE(has_space) << "a commit stands in memory that has no space in the base";
}

// A writer that died between the write of a record and its flush leaves the record where the next
// one reads it and a power cut takes it away: it has to be durable before the base gets it.
TEST_F(Regressions, RecoveryAppliedARecordThatItsDeadWriterHadNotFlushed) {
  test::write_file(path_, content("a", kPageBytes));
  {
    test::Opened opened(path_, test::options_for(ApplyChoice::async));
    opened.bytes()[0] = 'x';
    ASSERT_TRUE(opened.commit().ok());
    opened.crash();
  }
  auto watch = std::make_shared<Watch>();
  ASSERT_TRUE(test::try_open(path_, test::options_for(ApplyChoice::async), watch).ok());
  const auto events = watch->take_events();
  const auto applied = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.which == Which::base && event.act == Act::write;
  });
  ASSERT_NE(applied, events.end());
  EXPECT_NE(std::find(events.begin(), applied, Event{Which::journal, Act::flush}), applied);
}

// 18. A copy-on-write file system is full, and a commit had to enlarge the journal.
TEST_F(Regressions, AJournalThatCannotShrinkForWantOfSpaceDoesNotEndTheMapping) {
  constexpr std::uint64_t kPages = 40;
  test::write_file(path_, content("a", kPages * kPageBytes));
  Options options = test::options_for(ApplyChoice::async);
  options.journal_size_bytes = kJournalSizeMin;
  std::atomic<bool> full{false};
  std::atomic<std::uint64_t> reserved{0};
  test::Opened mapping(path_, options, watch_with([&](const Event& event) -> Status {
                         if (event.which == Which::base && event.act == Act::write && full)
                           return Status::failure(ENOSPC, "no space");
                         if (event.which == Which::journal && event.act == Act::reserve)
                           reserved = event.length;
                         return {};
                       }));
  full = true;
  reserved = 0;
  std::memset(mapping.bytes(), 'b', kPages * kPageBytes);
  ASSERT_TRUE(mapping.commit().ok());
  // Nor does it take much more than it needs: a crash would leave that taken.
  EXPECT_GT(reserved.load(), 0U);
  EXPECT_LT(reserved.load(), 2 * kPages * kPageBytes);
  full = false;
  mapping.bytes()[0] = 'c';
  ASSERT_TRUE(mapping.commit().ok());
  EXPECT_EQ(std::filesystem::file_size(path_ + kJournalSuffix), kJournalSizeMin);
  mapping.crash();
  EXPECT_EQ(byte_after_reopening(0), 'c');
  EXPECT_EQ(byte_after_reopening(1), 'b');
}

TEST_F(Regressions, TruncationLookedIntoAPageThatMayNotBeRead) {
  test::write_file(path_, content("a", kPageBytes + 100));
  test::Opened mapping(path_, test::options_for(ApplyChoice::async));
  ASSERT_TRUE(mapping->protect_window(mapping.bytes() + kPageBytes, kPageBytes, PROT_NONE).ok());
  ASSERT_TRUE(mapping->truncate(kPageBytes + 50).ok());
  ASSERT_TRUE(mapping->truncate(kPageBytes + 100).ok());
  ASSERT_TRUE(mapping.commit().ok());
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_EQ(test::read_file(path_),
            content("a", kPageBytes + 100).replace(kPageBytes + 50, 50, std::string(50, '\0')));
}

TEST_F(Regressions, PagesThatTheFileGrewIntoForgotTheirProtection) {
  test::write_file(path_, content("a", kPageBytes));
  test::Opened mapping(path_, test::options_for(ApplyChoice::async));
  constexpr std::size_t kWindowBytes = test::Opened::kWindowPages * kPageBytes;
  ASSERT_TRUE(mapping->protect_window(mapping.bytes(), kWindowBytes, PROT_NONE).ok());
  ASSERT_TRUE(
      mapping->protect_window(mapping.bytes() + kPageBytes, 2 * kPageBytes, PROT_READ | PROT_WRITE)
          .ok());
  ASSERT_TRUE(mapping->truncate(2 * kPageBytes).ok());
  mapping.bytes()[kPageBytes] = 'b';
  ASSERT_TRUE(mapping->truncate(kPageBytes).ok());
  ASSERT_TRUE(mapping->truncate(3 * kPageBytes).ok());
  mapping.bytes()[2 * kPageBytes] = 'c';
  ASSERT_TRUE(mapping.commit().ok());
  ASSERT_TRUE(mapping->close().ok());
  std::string expected = content("a", kPageBytes) + std::string(2 * kPageBytes, '\0');
  expected[2 * kPageBytes] = 'c';
  EXPECT_TRUE(test::read_file(path_) == expected);
}

// It ended the mapping's commits, though nothing was lost.
TEST_F(Regressions, AGrowthThatCouldNotBeWatchedCanBeTriedAgain) {
  if (const TrackerSupport support = probe_trackers(); !support.scan)
    GTEST_SKIP() << support.scan_reason;
  test::write_file(path_, "");
  test::Opened mapping(path_, test::options_for(ApplyChoice::async, TrackerChoice::scan));
  const int other = 0;  // who takes all there is
  for (std::uint64_t i = 0; i < kWatchedRangesMax; ++i)
    ASSERT_TRUE(StatedStores::watch(&other, 2 * i + 1, 2 * i + 2).ok());
  const Status refused = mapping->truncate(2 * kPageBytes);
  StatedStores::unwatch(&other, 0, ~std::uint64_t{0});
  EXPECT_EQ(refused.error_number(), ENOMEM) << refused.text();
  EXPECT_EQ(mapping->size(), 0U);
  ASSERT_TRUE(mapping->truncate(2 * kPageBytes).ok());
  mapping.bytes()[kPageBytes] = 'b';
  const Status committed = mapping.commit();
  ASSERT_TRUE(committed.ok()) << committed.text();
  ASSERT_TRUE(mapping->close().ok());
  std::string expected(2 * kPageBytes, '\0');
  expected[kPageBytes] = 'b';
  EXPECT_TRUE(test::read_file(path_) == expected);
}

// 20. The disk filled up when a cut had been applied, and recovery began with the record before it.
TEST_F(Regressions, RecoveryDoesNotWriteWhatALaterRecordCutsOff) {
  test::write_file(path_, content("a", 4 * kPageBytes));
  {
    test::Opened mapping(path_, test::options_for(ApplyChoice::eager));
    std::memset(mapping.bytes(), 'b', 4 * kPageBytes);
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(mapping->truncate(kPageBytes + 100).ok());
    ASSERT_TRUE(mapping.commit().ok());
    ASSERT_TRUE(mapping->truncate(2 * kPageBytes).ok());
    ASSERT_TRUE(mapping.commit().ok());
    mapping.crash();
  }
  auto watch = std::make_shared<test::Watch>();
  auto watched = test::watched_medium(medium(), watch);
  ASSERT_TRUE(recover(*watched).ok());
  for (const Event& event : watch->take_events()) {
    if (event.which == Which::base && event.act == Act::write) {
      EXPECT_LE(event.offset + event.length, kPageBytes + 100);
    }
  }
  EXPECT_EQ(test::read_file(path_),
            content("b", kPageBytes + 100) + std::string(kPageBytes - 100, '\0'));
}

// 21. A commit of everything asked the tracker for pages before a window that begins later.
TEST_F(Regressions, ACommitOfEverythingLookedInFrontOfTheWindow) {
  test::write_file(path_, content("a", 8 * kPageBytes));
  auto mapping = test::try_open(path_, test::options_for(ApplyChoice::async));
  ASSERT_TRUE(mapping.ok()) << mapping.status().text();
  auto window = mapping.value()->map_window(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, 0,
                                            5 * kPageBytes);
  ASSERT_TRUE(window.ok()) << window.status().text();
  window.value()[0] = 'b';
  EXPECT_TRUE(mapping.value()->has_pending_changes());
  ASSERT_TRUE(mapping.value()->commit_all().ok());
  EXPECT_FALSE(mapping.value()->has_pending_changes());
  ASSERT_TRUE(mapping.value()->close().ok());
  std::string expected = content("a", 8 * kPageBytes);
  expected[5 * kPageBytes] = 'b';
  EXPECT_TRUE(test::read_file(path_) == expected);
}

// A commit was acknowledged that only a file without a name had: gone with the process.
TEST_F(Regressions, CommitsAfterTheJournalWasRemovedWereAcknowledged) {
  constexpr std::uint64_t kMorePagesThanAreStaged = 3000;
  for (const ApplyChoice apply : {ApplyChoice::async, ApplyChoice::eager}) {
    for (const std::uint64_t pages : {std::uint64_t{4}, kMorePagesThanAreStaged}) {
      const std::string before = content("a", pages * kPageBytes);
      test::write_file(path_, before);
      auto mapping = test::try_open(path_, test::options_for(apply));
      ASSERT_TRUE(mapping.ok()) << mapping.status().text();
      auto window =
          mapping.value()->map_window(nullptr, before.size(), PROT_READ | PROT_WRITE, 0, 0);
      ASSERT_TRUE(window.ok()) << window.status().text();
      char* const bytes = window.value();
      bytes[0] = 'b';
      ASSERT_TRUE(mapping.value()->commit_all().ok());
      ASSERT_TRUE(std::filesystem::remove(path_ + ".pawl"));
      std::memset(bytes + 1, 'c', before.size() - 1);
      for (int call = 0; call < 2; ++call) {
        const Status refused = mapping.value()->commit_all();
        EXPECT_EQ(refused.error_number(), ESTALE) << refused.text();
        EXPECT_NE(refused.text().find("was removed while it was in use"), std::string::npos);
      }
      EXPECT_TRUE(mapping.value()->close().ok());
      EXPECT_TRUE(test::read_file(path_) == "b" + before.substr(1));
    }
  }
}

// By its bytes a file of the program was taken for a journal, and could not be recovered any more.
TEST_F(Regressions, AFileWhoseBytesAreThoseOfAJournalIsAFile) {
  for (const std::string& path : {path_, path_ + "-too.pawl"}) {
    test::write_file(path, content("a", 4 * kPageBytes));
    {
      auto mapping = test::try_open(path, test::options_for(ApplyChoice::async));
      ASSERT_TRUE(mapping.ok()) << mapping.status().text();
      auto window =
          mapping.value()->map_window(nullptr, 4 * kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
      ASSERT_TRUE(window.ok()) << window.status().text();
      std::memcpy(window.value(), "PAWLJRNL", 8);
      ASSERT_TRUE(mapping.value()->commit_all().ok());
    }  // as in a crash
    EXPECT_EQ(pawl_recover(path.c_str()), 1) << pawl_last_error();
    EXPECT_EQ(test::read_file(path).substr(0, 8), "PAWLJRNL");
  }
  EXPECT_TRUE(test::try_open(path_, test::options_for(ApplyChoice::async)).ok());
}

// A journal was mapped as if it were a file, and cut: the commits of its file were gone.
TEST_F(Regressions, AJournalWasMappedAsAFile) {
  test::write_file(path_, content("a", 4 * kPageBytes));
  auto mapping = test::try_open(path_, test::options_for(ApplyChoice::async));
  ASSERT_TRUE(mapping.ok()) << mapping.status().text();
  const std::string journal = path_ + ".pawl";
  const std::string of_another = path_ + ".kept.pawl";
  std::filesystem::copy_file(journal, of_another);
  for (const std::string& named : {journal, of_another}) {
    const int descriptor = ::open(named.c_str(), O_RDWR);
    EXPECT_EQ(pawl_mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0),
              MAP_FAILED);
    EXPECT_EQ(errno, EINVAL) << pawl_last_error();
    EXPECT_NE(std::string(pawl_last_error()).find("is a journal"), std::string::npos);
    ::close(descriptor);
    EXPECT_EQ(pawl_recover(named.c_str()), -1);
    EXPECT_EQ(pawl_snapshot(named.c_str(), (path_ + ".copy").c_str(), 0), -1);
  }
  EXPECT_TRUE(mapping.value()->close().ok());
}

// Such a size was taken, and every later commit failed of it.
TEST_F(Regressions, AFileGrewBeyondWhatItsFileSystemCanHave) {
  constexpr std::uint64_t kFarBytes = std::uint64_t{1} << 50;
  test::write_file(path_ + ".plain", "x");
  if (::truncate((path_ + ".plain").c_str(), static_cast<off_t>(kFarBytes)) == 0)
    GTEST_SKIP() << "this file system can have it";
  test::write_file(path_, "file");
  const test::Opened mapping(path_, test::options_for(ApplyChoice::async));
  EXPECT_EQ(mapping->truncate(kFarBytes).error_number(), EFBIG);
  EXPECT_EQ(mapping->write(kFarBytes, bytes_of("x")).error_number(), EFBIG);
  mapping.bytes()[0] = 'b';
  EXPECT_EQ(mapping.commit().text(), "");
  EXPECT_EQ(mapping->close().text(), "");
}

// It took all space there was before it failed, and other programs met a full disk.
TEST_F(Regressions, AReservationThatNoDiskCanHoldTakesNothing) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(descriptor, 0);
  auto medium = open_block_medium(descriptor);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  EXPECT_EQ(medium.value()->base().reserve(0, std::uint64_t{1} << 42).error_number(), ENOSPC);
  // What wraps around is no question of space.
  EXPECT_NE(medium.value()->base().reserve(4096, ~std::uint64_t{0} - 8191).error_number(), ENOSPC);
  struct stat status{};
  ASSERT_EQ(::fstat(descriptor, &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
  ::close(descriptor);
}

}  // namespace
}  // namespace pawl
