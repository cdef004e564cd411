// What a snapshot is of a file that is clean, in use, or left by a crash; what is refused; and what
// the writer does for as long as its records are held.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "fase/closed_file.h"
#include "journal/reader.h"
#include "medium/block_medium.h"
#include "medium/named_medium.h"
#include "pawl/pawl.h"
#include "snapshot/committed_copy.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"
#include "torture/file_systems.h"

namespace pawl::test {
namespace {

constexpr std::uint64_t kPages = 40;

struct File {
  TemporaryDirectory directory;
  std::string path = directory / "file";
  std::string copy = directory / "copy";
  std::string journal = path + ".pawl";
  File() { write_file(path, std::string(kPages * kPageBytes, 'a')); }
};

Options options() { return options_for(ApplyChoice::async); }

Status take(const File& file, bool may_replace = false) {
  return snapshot::make_snapshot(file.path, file.copy, may_replace, fase::check_is_finished)
      .status();
}

void expect_taken(const File& file, const std::string& content) {
  const Status taken = take(file, true);
  ASSERT_TRUE(taken.ok()) << taken.text();
  EXPECT_TRUE(read_file(file.copy) == content) << "the copy is not as expected";
  char mark[64];
  EXPECT_LT(::getxattr(file.copy.c_str(), kMarkAttribute, mark, sizeof mark), 0);
}

journal::Header header_of(const std::string& path) {
  auto medium = open_block_medium(path, true);
  auto file = medium.value()->read_journal();
  return journal::Reader::open(*file.value()).value().header();
}

// The journal of a file, held as a snapshot holds it.
class Holder {
 public:
  explicit Holder(const std::string& path)
      : medium_(std::move(open_named_file(path, true).value())), journal_(medium_.hold_journal()) {
    EXPECT_TRUE(journal_.ok()) << journal_.status().text();
    start_ = journal::Reader::open(journal_.value().file()).value().header();
    EXPECT_TRUE(journal_.value().keep_from(start_.tail_sequence).ok());
  }

  // Of the records from the first on that it holds, the last that is reached.
  std::uint64_t last_sequence() {
    journal_.value().forget_what_was_read();
    auto reader = journal::Reader::open(journal_.value().file());
    reader.value().begin_at(start_.tail_offset, start_.tail_sequence);
    std::uint64_t last = 0;
    for (;;) {
      auto record = reader.value().next();
      if (!record.ok() || !record.value().has_value()) return last;
      last = record.value()->header.sequence;
    }
  }

 private:
  struct Looking final : NamedMedium {
    using NamedMedium::NamedMedium;
    MediumFile& base() override { return base_file(); }
    Result<std::unique_ptr<MediumFile>> open_side_file(const std::string&) override {
      return Status::failure(EROFS, "for looking only");
    }
  };
  Looking medium_;
  Result<HeldJournal> journal_;
  journal::Header start_;
};

struct stat status_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status;
}

TEST(Copies, ACleanFileIsCopiedWithItsModeAndItsHoles) {
  File file;
  ASSERT_EQ(::truncate(file.path.c_str(), 64 << 20), 0);
  ASSERT_EQ(::chmod(file.path.c_str(), 0640), 0);
  expect_taken(file, read_file(file.path));
  const struct stat copy = status_of(file.copy);
  EXPECT_EQ(copy.st_mode & 07777, 0640u);
  EXPECT_LT(copy.st_blocks * 512, 1 << 20) << "the hole was filled";
}

TEST(Copies, AFileWithoutBytesIsCopied) {
  File file;
  write_file(file.path, "");
  expect_taken(file, "");
}

TEST(Copies, TheOwnerIsKept) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  File file;
  ASSERT_EQ(::chown(file.path.c_str(), 1234, 4321), 0);
  expect_taken(file, read_file(file.path));
  EXPECT_EQ(status_of(file.copy).st_uid, 1234u);
  EXPECT_EQ(status_of(file.copy).st_gid, 4321u);
}

TEST(Copies, WhatIsNotCommittedIsNotInIt) {
  File file;
  Opened mapping(file.path, options());
  std::string expected = read_file(file.path);
  expect_taken(file, expected);
  for (int i = 0; i < 10; ++i) {
    mapping.bytes()[i * kPageBytes] = expected[i * kPageBytes] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    mapping.bytes()[0] = 'x';
    expect_taken(file, expected);
    mapping.bytes()[0] = 'b';
  }
}

TEST(Copies, GrowthAndShrinkageAreInIt) {
  File file;
  Opened mapping(file.path, options());
  std::string expected = read_file(file.path);
  for (const std::size_t pages : {50, 3, 60, 1, 2}) {
    // Shorter before: zeros must stand where it grew again.
    ASSERT_TRUE(mapping->truncate(pages / 2 * kPageBytes + 5).ok());
    ASSERT_TRUE(mapping->truncate(pages * kPageBytes + 7).ok());
    expected.resize(std::min(expected.size(), pages / 2 * kPageBytes + 5));
    expected.resize(pages * kPageBytes + 7);
    mapping.bytes()[0] = expected[0] = static_cast<char>(pages);
    ASSERT_TRUE(mapping.commit().ok());
    expect_taken(file, expected);
  }
}

TEST(Copies, WhatACrashLeftIsCopiedAsRecoveryWouldLeaveItAndNotChanged) {
  File file;
  {
    Opened mapping(file.path, options());
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping->truncate(3 * kPageBytes).ok());
    ASSERT_TRUE(mapping.commit().ok());
    mapping.bytes()[1] = 'x';
    mapping.crash();
  }
  const std::string base = read_file(file.path);
  const std::string journal = read_file(file.journal);
  std::string expected(3 * kPageBytes, 'a');
  expected[0] = 'b';
  expect_taken(file, expected);
  EXPECT_TRUE(read_file(file.path) == base);
  EXPECT_TRUE(read_file(file.journal) == journal);
  EXPECT_GT(::getxattr(file.path.c_str(), kMarkAttribute, nullptr, 0), 0);
  ASSERT_GT(::pawl_recover(file.path.c_str()), 0);
  EXPECT_TRUE(read_file(file.path) == read_file(file.copy));
}

// As pawl recover does: what is refused there is refused here.
TEST(Copies, ADamagedAMissingAndAForeignJournalAreRefused) {
  File file;
  {
    Opened mapping(file.path, options());
    for (const char byte : {'b', 'c', 'd'}) {
      mapping.bytes()[0] = byte;
      ASSERT_TRUE(mapping.commit().ok());
    }
    mapping.crash();
  }
  const std::string journal = read_file(file.journal);
  std::string damaged = journal;
  damaged[journal::kAreaStart + 100] ^= 1;
  write_file(file.journal, damaged);
  EXPECT_EQ(take(file).error_number(), EBADMSG);
  damaged = journal;
  damaged[24] ^= 1;  // the journal id
  damaged[4096 + 24] ^= 1;
  write_file(file.journal, damaged);
  EXPECT_EQ(take(file).error_number(), EBADMSG);
  ASSERT_EQ(::unlink(file.journal.c_str()), 0);
  EXPECT_EQ(take(file).error_number(), ENODATA);
  EXPECT_NE(::access(file.copy.c_str(), F_OK), 0) << "a copy was left";
}

TEST(Copies, NothingIsReplacedUnasked) {
  File file;
  write_file(file.copy, "mine");
  EXPECT_EQ(take(file).error_number(), EEXIST);
  EXPECT_EQ(read_file(file.copy), "mine");
  EXPECT_TRUE(take(file, true).ok());
  EXPECT_TRUE(read_file(file.copy) == read_file(file.path));
}

TEST(Copies, NeitherFileNorJournalNorAFileInUseIsReplaced) {
  File file;
  const std::string before = read_file(file.path);
  const auto refusal = [&](const std::string& to) {
    return snapshot::make_snapshot(file.path, to, true, fase::check_is_finished)
        .status()
        .error_number();
  };
  EXPECT_EQ(refusal(file.path), EINVAL);
  ASSERT_EQ(::link(file.path.c_str(), (file.directory / "other").c_str()), 0);
  EXPECT_EQ(refusal(file.directory / "other"), EINVAL);
  EXPECT_EQ(refusal(file.journal), EINVAL);
  EXPECT_EQ(refusal(file.directory.path()), EISDIR);
  EXPECT_EQ(refusal(file.directory / "nowhere/copy"), ENOENT);
  write_file(file.copy, std::string(kPageBytes, 'z'));
  const Opened used(file.copy, options());
  EXPECT_EQ(refusal(file.copy), EBUSY);
  EXPECT_TRUE(read_file(file.path) == before);
}

// Only names were compared.
TEST(Copies, TheJournalOfAnotherFileWasReplaced) {
  File file;
  const std::string other = file.directory / "other";
  write_file(other, std::string(kPageBytes, 'o'));
  {
    const Opened left(other, options());
  }
  const std::string journal = read_file(other + ".pawl");
  const Status replaced =
      snapshot::make_snapshot(file.path, other + ".pawl", true, fase::check_is_finished).status();
  EXPECT_EQ(replaced.error_number(), EINVAL) << replaced.text();
  EXPECT_TRUE(read_file(other + ".pawl") == journal);
  EXPECT_EQ(pawl_recover(other.c_str()), 0) << pawl_last_error();
}

TEST(Copies, AFileThatWasRenamedWhileItIsMappedWasReplaced) {
  File file;
  const std::string other = file.directory / "other";
  write_file(other, std::string(kPageBytes, 'o'));
  const Opened used(other, options());
  ASSERT_EQ(::rename(other.c_str(), file.copy.c_str()), 0);
  EXPECT_EQ(take(file, true).error_number(), EBUSY);
  // Nor where it cannot be known by its mark.
  ASSERT_EQ(::removexattr(file.copy.c_str(), kMarkAttribute), 0);
  EXPECT_EQ(take(file, true).error_number(), EBUSY);
  EXPECT_EQ(read_file(file.copy).substr(0, 1), "o");
}

// A hard link: its journal stands beside the other name.
TEST(Copies, AFileThatIsMappedByAnotherNameWasRefused) {
  File file;
  const std::string other = file.directory / "other";
  ASSERT_EQ(::link(file.path.c_str(), other.c_str()), 0);
  const Opened used(other, options());
  const Status taken = take(file, false);
  EXPECT_EQ(taken.text(), "");
  EXPECT_TRUE(read_file(file.copy) == read_file(file.path));
}

TEST(Copies, TheCFunctionSaysWhatIsWrong) {
  File file;
  EXPECT_EQ(::pawl_snapshot(nullptr, file.copy.c_str(), 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::pawl_snapshot(file.path.c_str(), file.copy.c_str(), 2), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::pawl_snapshot((file.path + "x").c_str(), file.copy.c_str(), 0), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(::pawl_snapshot(file.path.c_str(), file.copy.c_str(), 0), 0);
  EXPECT_EQ(::pawl_snapshot(file.path.c_str(), file.copy.c_str(), 0), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_NE(std::string(pawl_last_error()).find("exists already"), std::string::npos);
}

// In the process that has it mapped as in any other; and by descriptors that the kernel gives back.
TEST(Held, RecordsAreKeptAndTheJournalGrowsAndShrinksBack) {
  File file;
  Opened mapping(file.path, options());
  mapping.bytes()[0] = 'b';
  ASSERT_TRUE(mapping.commit().ok());
  const std::uint64_t size = options().journal_size_bytes;  // which a large record leaves it
  std::string expected = read_file(file.path);
  expected.resize(kPages * kPageBytes);
  const auto commit_pages = [&](int commits) {
    for (int i = 0; i < commits; ++i) {
      for (std::uint64_t page = 0; page < kPages; ++page) {
        std::fill_n(mapping.bytes() + page * kPageBytes, kPageBytes,
                    static_cast<char>('c' + i % 20));
        std::fill_n(expected.begin() + page * kPageBytes, kPageBytes,
                    static_cast<char>('c' + i % 20));
      }
      ASSERT_TRUE(mapping.commit().ok());
    }
  };
  {
    Holder holder(file.path);
    commit_pages(30);  // of 160 KiB each, and the journal has 1 MiB
    EXPECT_EQ(holder.last_sequence(), 31u) << "records were dropped";
    // The background moves the tail.
    for (int i = 0; i < 5000 && header_of(file.path).tail_sequence == 1; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(header_of(file.path).tail_sequence, 1u) << "a later snapshot reads all of them";
    EXPECT_GT(std::filesystem::file_size(file.journal), size);
    expect_taken(file, expected);
  }
  commit_pages(1);
  EXPECT_EQ(std::filesystem::file_size(file.journal), size) << "the disk did not get it back";
  commit_pages(20);
  EXPECT_EQ(std::filesystem::file_size(file.journal), size);
  expect_taken(file, expected);
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_TRUE(read_file(file.path) == expected);
}

// Each commit asked for each of them, one by one, and the kernel goes through all for each answer:
// who may read a file stopped its commits for minutes.
TEST(Held, ManyLocksOfAReaderWereAskedForOneByOne) {
  File file;
  Opened mapping(file.path, options());
  const int side = ::open(file.journal.c_str(), O_RDONLY);
  std::vector<int> readers;
  const auto hold = [&](off_t record) {
    readers.push_back(::open(file.journal.c_str(), O_RDONLY));
    struct flock lock = {.l_type = F_RDLCK,
                         .l_whence = SEEK_SET,
                         .l_start = kWriterLockBytes + record,
                         .l_len = 1,
                         .l_pid = 0};
    ASSERT_EQ(::fcntl(readers.back(), F_OFD_SETLK, &lock), 0);
  };
  EXPECT_EQ(first_held_record(side), kNoRecordIsHeld);
  constexpr off_t kLast = 1000;
  for (off_t record = kLast; record > kLast - kHeldLocksMax; --record) hold(record);
  EXPECT_EQ(first_held_record(side), static_cast<std::uint64_t>(kLast - kHeldLocksMax + 1));
  for (off_t record = 1; record <= 2 * kHeldLocksMax; ++record)
    hold(kLast - kHeldLocksMax - record);
  EXPECT_EQ(first_held_record(side), 0u) << "all of them";
  mapping.bytes()[0] = 'b';
  EXPECT_TRUE(mapping.commit().ok());
  for (const int reader : readers) ::close(reader);
  ::close(side);
}

TEST(Held, ACommitTooLargeToBeStagedStandsBehindWhatIsHeld) {
  File file;
  constexpr std::size_t kLarge = 2100;
  auto opened = try_open(file.path, options());
  ASSERT_TRUE(opened.ok());
  Mapping& mapping = *opened.value();
  auto window = mapping.map_window(nullptr, kLarge * kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
  ASSERT_TRUE(window.ok());
  char* const bytes = window.value();
  std::string expected = read_file(file.path);
  const auto commit = [&](std::size_t pages, char byte) {
    ASSERT_TRUE(mapping.truncate(pages * kPageBytes).ok());
    expected.resize(pages * kPageBytes);
    for (std::size_t page = 0; page < pages; ++page)
      bytes[page * kPageBytes + 9] = expected[page * kPageBytes + 9] = byte;
    const Status committed = mapping.commit_all();
    ASSERT_TRUE(committed.ok()) << committed.text();
  };
  commit(30, 'b');
  {
    Holder holder(file.path);
    for (const char byte : {'c', 'd', 'e'}) {
      commit(20, byte);
      commit(kLarge, byte);
      expect_taken(file, expected);
    }
    EXPECT_EQ(holder.last_sequence(), 7u) << "records were dropped";
  }
  // A crash now is recovered from all of it.
  opened.value().reset();
  expect_taken(file, expected);
  ASSERT_GE(::pawl_recover(file.path.c_str()), 6);
  EXPECT_TRUE(read_file(file.path) == expected);
}

// A ring that goes round cannot grow: the snapshot that finds it so gives way once.
TEST(Held, ARingThatGoesRoundIsDroppedWhenItIsFull) {
  File file;
  Opened mapping(file.path, options());
  const auto commit = [&](char byte) {
    for (std::uint64_t page = 0; page < kPages; ++page)
      std::fill_n(mapping.bytes() + page * kPageBytes, kPageBytes, byte);
    ASSERT_TRUE(mapping.commit().ok());
  };
  // Until the ring has its size, more than half of it was full, and the background dropped that, so
  // that the front is free.
  const std::uint64_t size = options().journal_size_bytes;
  std::uint64_t last = 0;
  const auto front_is_free = [&] {
    const journal::Header header = header_of(file.path);
    return header.journal_bytes == size && header.tail_sequence == last + 1 &&
           header.tail_offset * 2 > size;
  };
  while (!front_is_free()) {
    commit(static_cast<char>('b' + last % 20));
    last += 1;
    for (int i = 0; i < 50 && !front_is_free(); ++i) ::usleep(1000);
  }
  last += 60;
  {
    Holder first(file.path);
    for (int i = 0; i < 30; ++i) commit(static_cast<char>('b' + i % 20));
    Holder second(file.path);
    for (int i = 0; i < 30; ++i) commit(static_cast<char>('b' + i % 20));
    EXPECT_LT(first.last_sequence(), last) << "it did not go round";
    EXPECT_EQ(second.last_sequence(), last) << "it does not grow from then on";
    for (int i = 0; i < 10; ++i) commit(static_cast<char>('b' + i));
  }
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_TRUE(read_file(file.path) == std::string(kPages * kPageBytes, 'k'));
}

TEST(Held, AFileIsClosedAsEver) {
  File file;
  Opened mapping(file.path, options());
  mapping.bytes()[0] = 'b';
  ASSERT_TRUE(mapping.commit().ok());
  const Holder holder(file.path);
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_NE(::access(file.journal.c_str(), F_OK), 0);
  EXPECT_LT(::getxattr(file.path.c_str(), kMarkAttribute, nullptr, 0), 0);
  EXPECT_EQ(read_file(file.path)[0], 'b');
  // And mapped again.
  const Opened again(file.path, options());
  EXPECT_EQ(again.bytes()[0], 'b');
}

// A crash in the middle of a close that let go of nothing would leave records without a mark.
TEST(Held, ACloseDropsTheRecordsBeforeTheMark) {
  File file;
  auto watch = std::make_shared<Watch>();
  Opened mapping(file.path, options(), watch);
  mapping.bytes()[0] = 'b';
  ASSERT_TRUE(mapping.commit().ok());
  const Holder holder(file.path);
  std::string journal;
  watch->judge_with([&](const Event& event) {
    if (event.which == Which::base && event.act == Act::flush) journal = read_file(file.journal);
    return Status{};
  });
  ASSERT_TRUE(mapping->close().ok());
  // As it was when the mark went.
  write_file(file.journal, journal);
  EXPECT_EQ(::pawl_recover(file.path.c_str()), 0) << pawl_last_error();
}

TEST(Held, AWriterIsNotKeptFromOpeningWhatACrashLeft) {
  File file;
  {
    Opened mapping(file.path, options());
    mapping.bytes()[0] = 'b';
    ASSERT_TRUE(mapping.commit().ok());
    mapping.crash();
  }
  const Holder holder(file.path);
  const Opened mapping(file.path, options());
  EXPECT_EQ(mapping.bytes()[0], 'b');
}

// On a disk without room for a journal that grows, the snapshot gives way and the commits go on.
TEST(Held, OnAFullDiskNoCommitFailsForIt) {
  const char* const scratch = std::getenv("PAWL_TEST_DIR");
  FileSystems systems(scratch != nullptr ? scratch : ".");
  if (!systems.make("ext4")) GTEST_SKIP() << systems.left_out().front();
  const std::string directory = systems.places().front().directory;
  const std::string path = directory + "/file";
  write_file(path, std::string(kPages * kPageBytes, 'a'));
  Opened mapping(path, options());
  const auto commit = [&](std::uint64_t number) {
    for (std::uint64_t page = 0; page < kPages; ++page)
      std::fill_n(mapping.bytes() + page * kPageBytes, kPageBytes,
                  static_cast<char>('c' + number % 20));
    const Status committed = mapping.commit();
    ASSERT_TRUE(committed.ok()) << number << ": " << committed.text();
  };
  // The ring has its size before the disk is full: larger commits than it find no room.
  std::uint64_t last = 0;
  while (header_of(path).journal_bytes < options().journal_size_bytes) {
    ASSERT_NO_FATAL_FAILURE(commit(last++));
    ::usleep(1000);
  }
  Filler filler(directory);
  filler.fill(0);
  Holder holder(path);
  last += 60;
  for (std::uint64_t i = 0; i < 60; ++i) ASSERT_NO_FATAL_FAILURE(commit(i));
  EXPECT_LT(holder.last_sequence(), last) << "there was room after all";
  ASSERT_TRUE(mapping->close().ok());
  EXPECT_TRUE(read_file(path) ==
              std::string(kPages * kPageBytes, static_cast<char>('c' + 59 % 20)));
}

}  // namespace
}  // namespace pawl::test
