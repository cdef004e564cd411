// Files that are written where they are mapped: sizes, holes, full file systems, and a mapping on
// top of them.
#include "medium/persistent_medium.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "mapping/mapping.h"
#include "mapping/open_mappings.h"
#include "medium/byte_ranges.h"
#include "medium/open_medium.h"
#include "medium/persistent_file.h"
#include "support/temporary_directory.h"
#include "track/tracker.h"
#include "workload/content.h"

namespace pawl {
namespace {

using test::TemporaryDirectory;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::string text_at(MediumFile& file, std::uint64_t offset, std::size_t count) {
  std::string text(count, '?');
  const Status read = file.read(offset, std::as_writable_bytes(std::span(text)));
  EXPECT_TRUE(read.ok()) << read.text();
  return text;
}

std::uint64_t allocated_bytes(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

class PersistentMediumTest : public testing::Test {
 protected:
  static constexpr const char* kMemory = "/dev/shm";

  void SetUp() override {
    test::write_file(path_, "");
    auto opened = open_persistent_medium(path_);
    if (opened.status().error_number() == EOPNOTSUPP) GTEST_SKIP() << opened.status().text();
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    medium_ = std::move(opened.value());
  }
  MediumFile& base() { return medium_->base(); }
  void write(std::uint64_t offset, const std::string& text) {
    const Status written = base().write(offset, bytes_of(text));
    ASSERT_TRUE(written.ok()) << written.text();
  }

  TemporaryDirectory directory_{::access(kMemory, W_OK) == 0 ? kMemory : nullptr};
  std::string path_ = directory_ / "file";
  std::unique_ptr<Medium> medium_;
};

TEST_F(PersistentMediumTest, WritesWhereItIsRead) {
  EXPECT_EQ(medium_->block_bytes(), 64u);
  write(0, "hello");
  ASSERT_TRUE(base().flush().ok());
  EXPECT_EQ(test::read_file(path_), "hello");
  EXPECT_EQ(text_at(base(), 1, 4), "ello");
  EXPECT_EQ(std::memcmp(base().in_place(), "hello", 5), 0);
  const std::byte* const before = base().in_place();
  write(5'000'000, "far away");
  EXPECT_EQ(base().in_place(), before);
  EXPECT_EQ(base().size().value(), 5'000'008u);
  EXPECT_EQ(std::memcmp(base().in_place() + 5'000'000, "far away", 8), 0);
  ASSERT_TRUE(base().write_durably(100, bytes_of("now")).ok());
  EXPECT_EQ(test::read_file(path_).substr(100, 3), "now");
}

TEST_F(PersistentMediumTest, ReadsZerosPastTheEndAndInHoles) {
  write(0, "x");
  EXPECT_EQ(text_at(base(), 0, 3), std::string("x\0\0", 3));
  EXPECT_EQ(text_at(base(), 100'000, 3), std::string(3, '\0'));
  ASSERT_TRUE(base().resize(1 << 20).ok());
  EXPECT_EQ(text_at(base(), 300'000, 5), std::string(5, '\0'));
  // To read a hole takes no space.
  EXPECT_LE(allocated_bytes(path_), 2 * kPageBytes);
}

TEST_F(PersistentMediumTest, ShrinksAndGrowsWithZerosBetween) {
  write(0, std::string(10'000, 'a'));
  ASSERT_TRUE(base().resize(5'000).ok());
  ASSERT_TRUE(base().resize(20'000).ok());
  ASSERT_TRUE(base().flush().ok());
  EXPECT_EQ(test::read_file(path_), std::string(5'000, 'a') + std::string(15'000, '\0'));
  EXPECT_EQ(text_at(base(), 4'999, 3), std::string("a\0\0", 3));
  write(19'999, "zz");
  EXPECT_EQ(base().size().value(), 20'001u);
}

TEST_F(PersistentMediumTest, PunchesAndZeros) {
  write(0, std::string(8 * kPageBytes, 'a'));
  const std::uint64_t full = allocated_bytes(path_);
  ASSERT_TRUE(base().punch(kPageBytes + 10, 3 * kPageBytes).ok());
  EXPECT_EQ(allocated_bytes(path_), full - 2 * kPageBytes);
  std::string wanted(8 * kPageBytes, 'a');
  std::fill_n(wanted.begin() + kPageBytes + 10, 3 * kPageBytes, '\0');
  EXPECT_EQ(text_at(base(), 0, wanted.size()), wanted);
  ASSERT_TRUE(base().zero(2 * kPageBytes + 1, 4 * kPageBytes).ok());
  std::fill_n(wanted.begin() + 2 * kPageBytes + 1, 4 * kPageBytes, '\0');
  EXPECT_EQ(text_at(base(), 0, wanted.size()), wanted);
  EXPECT_EQ(allocated_bytes(path_), full);
  // Only within the file: the size stays.
  ASSERT_TRUE(base().zero(8 * kPageBytes - 2, 100).ok());
  EXPECT_EQ(base().size().value(), 8 * kPageBytes);
  write(2 * kPageBytes, "again");
  EXPECT_EQ(text_at(base(), 2 * kPageBytes, 5), "again");
}

TEST_F(PersistentMediumTest, ReservesBehindTheEndWithoutGrowing) {
  ASSERT_TRUE(base().reserve(100'000, 5'000).ok());
  EXPECT_EQ(base().size().value(), 0u);
  EXPECT_GE(allocated_bytes(path_), 2 * kPageBytes);
}

TEST_F(PersistentMediumTest, IsAFileLikeAnyOther) {
  // Against a model, by random calls; read as memory and by the file's name.
  std::mt19937 random(7);
  test::Content model;
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t offset = random() % 70'000;
    const std::uint64_t length = 1 + random() % (random() % 4 == 0 ? 9'000 : 200);
    switch (random() % 8) {
      case 0:
        ASSERT_TRUE(base().resize(offset).ok());
        model.resize(offset);
        break;
      case 1: {
        const std::uint64_t end = std::min(offset + length, model.size());
        if (offset >= end) break;
        ASSERT_TRUE(base().punch(offset, end - offset).ok());
        model.zero(offset, end - offset);
        break;
      }
      case 2:
        ASSERT_TRUE(base().zero(offset, length).ok());
        if (offset < model.size()) model.zero(offset, std::min(length, model.size() - offset));
        break;
      case 3:
        ASSERT_TRUE(base().reserve(offset, length).ok());
        break;
      case 4:
        ASSERT_TRUE(base().flush().ok());
        break;
      default: {
        std::vector<std::byte> bytes(length);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        ASSERT_TRUE(base().write(offset, bytes).ok());
        model.write(offset, bytes);
      }
    }
    ASSERT_EQ(base().size().value(), model.size()) << round;
    std::vector<std::byte> wanted(length + 64);
    std::vector<std::byte> found(wanted.size());
    model.read(offset, wanted);
    ASSERT_TRUE(base().read(offset, found).ok());
    ASSERT_EQ(found, wanted) << round;
    if (round % 100 != 0) continue;
    ASSERT_EQ(test::Content::load_from(path_).first_difference(model), std::nullopt) << round;
  }
}

// A file that another writer changed until the lock was taken.
TEST_F(PersistentMediumTest, LearnsWhatAnotherWriterDid) {
  EXPECT_EQ(base().size().value(), 0u);
  test::write_file(path_, "somebody's");
  auto journal = medium_->acquire_journal(true);
  ASSERT_TRUE(journal.ok()) << journal.status().text();
  EXPECT_EQ(base().size().value(), 10u);
  EXPECT_EQ(text_at(base(), 0, 10), "somebody's");
}

TEST_F(PersistentMediumTest, KeepsTheSideFileAsMemory) {
  auto journal = medium_->acquire_journal(true);
  ASSERT_TRUE(journal.ok()) << journal.status().text();
  EXPECT_TRUE(journal.value().is_new);
  EXPECT_NE(journal.value().file->in_place(), nullptr);
  ASSERT_TRUE(journal.value().file->write_durably(64, bytes_of("line")).ok());
  ASSERT_TRUE(medium_->publish_journal().ok());
  EXPECT_EQ(test::read_file(path_ + ".pawl").substr(64), "line");
  auto second = open_persistent_medium(path_);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value()->acquire_journal(true).status().error_number(), EBUSY);
  journal.value().file.reset();
  EXPECT_TRUE(medium_->remove_journal().ok());
}

// ------------------------------------------------------------------------------------ no space

class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    ::mkdir(path_.c_str(), 0700);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  const std::string path_;
  bool mounted_ = false;
};

TEST(PersistentMediumOnAFullDisk, IsToldAndNotKilled) {
  const TemporaryDirectory directory;
  const SmallDisk disk(directory / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs takes root";
  const std::string path = directory / "disk/file";
  test::write_file(path, "x");
  auto medium = open_persistent_medium(path);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  MediumFile& base = medium.value()->base();
  // All holes, and more than there is space for.
  ASSERT_TRUE(base.resize(8 << 20).ok());
  const std::vector<std::byte> page(kPageBytes, std::byte{'p'});
  std::uint64_t offset = kPageBytes;
  Status written;
  for (; written.ok() && offset < (8 << 20); offset += kPageBytes)
    written = base.write(offset, page);
  EXPECT_EQ(written.error_number(), ENOSPC) << written.text();
  EXPECT_FALSE(written.text().empty());
  EXPECT_EQ(base.reserve(4 << 20, kPageBytes).error_number(), ENOSPC);
  EXPECT_EQ(base.zero(4 << 20, kPageBytes).error_number(), ENOSPC);
  EXPECT_EQ(base.write(9 << 20, page).error_number(), ENOSPC);
  // Holes are read all the same, and what has its space can be written.
  EXPECT_EQ(text_at(base, 7 << 20, 8), std::string(8, '\0'));
  EXPECT_EQ(text_at(base, kPageBytes, 2), "pp");
  EXPECT_TRUE(base.write(kPageBytes, bytes_of("new")).ok());
  // Space that was given back can be had again.
  ASSERT_TRUE(base.punch(kPageBytes, 4 * kPageBytes).ok());
  EXPECT_TRUE(base.write(6 << 20, page).ok());
  EXPECT_EQ(text_at(base, 6 << 20, 2), "pp");
}

TEST(PersistentMediumOnAFullDisk, ACommitIsRefusedAndTriedAgain) {
  const TemporaryDirectory directory;
  const SmallDisk disk(directory / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs takes root";
  const std::string path = directory / "disk/file";
  const std::string ballast = directory / "disk/ballast";
  test::write_file(path, std::string(100, 'a'));
  auto medium = open_persistent_medium(path);
  ASSERT_TRUE(medium.ok());
  Options options;
  options.journal_size_bytes = 64 << 10;
  options.resident_bytes_max = std::uint64_t{1} << 30;
  auto mapping = Mapping::open(std::move(medium.value()), options);
  ASSERT_TRUE(mapping.ok()) << mapping.status().text();
  std::string filling(kPageBytes, 'b');
  {
    std::ofstream file(ballast, std::ios::binary);
    while (file.write(filling.data(), kPageBytes).flush()) continue;
  }
  ASSERT_TRUE(mapping.value()->truncate(20 * kPageBytes).ok());
  ASSERT_TRUE(mapping.value()->write(10 * kPageBytes, bytes_of("wants a page")).ok());
  const Status refused = mapping.value()->commit_all();
  EXPECT_EQ(refused.error_number(), ENOSPC) << refused.text();
  ASSERT_EQ(::unlink(ballast.c_str()), 0);
  const Status taken = mapping.value()->commit_all();
  EXPECT_TRUE(taken.ok()) << taken.text();
  ASSERT_TRUE(mapping.value()->close().ok());
  const std::string content = test::read_file(path);
  EXPECT_EQ(content.size(), 20 * kPageBytes);
  EXPECT_EQ(content.substr(10 * kPageBytes, 12), "wants a page");
}

// --------------------------------------------------------------------------------- with a mapping

TEST_F(PersistentMediumTest, ACommitOutlivesItsProcess) {
  medium_.reset();
  test::write_file(path_, std::string(3 * kPageBytes, '.'));
  const pid_t child = ::fork();
  if (child == 0) {
    Options options;
    options.journal_size_bytes = 64 << 10;
    options.resident_bytes_max = std::uint64_t{1} << 30;
    auto medium = open_persistent_medium(path_);
    auto mapping = Mapping::open(std::move(medium.value()), options);
    bool well = mapping.ok();
    for (int i = 0; well && i < 2000; ++i) {  // round the ring, more than once
      well = mapping.value()->write(static_cast<std::uint64_t>(i), bytes_of("c")).ok() &&
             mapping.value()->commit_all().ok();
    }
    well = well && mapping.value()->write(5, bytes_of("not committed")).ok();
    std::_Exit(well ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto medium = open_persistent_medium(path_);
  ASSERT_TRUE(medium.ok());
  const auto recovered = recover(*medium.value());
  ASSERT_TRUE(recovered.ok()) << recovered.status().text();
  EXPECT_GT(recovered.value(), 0u);
  EXPECT_EQ(test::read_file(path_),
            std::string(2000, 'c') + std::string(3 * kPageBytes - 2000, '.'));
}

// One medium's journal is read by the other.
TEST_F(PersistentMediumTest, GoesOnAsABlockFileAndBack) {
  medium_.reset();
  test::write_file(path_, std::string(100, '.'));
  Options options;
  options.journal_size_bytes = 64 << 10;
  options.resident_bytes_max = std::uint64_t{1} << 30;
  std::string wanted(100, '.');
  for (std::uint64_t life = 0; life < 6; ++life) {
    auto medium = open_medium(path_, false, life % 2 == 0 ? MediumKind::memory : MediumKind::block);
    ASSERT_TRUE(medium.ok()) << medium.status().text();
    EXPECT_EQ(medium.value()->block_bytes(), life % 2 == 0 ? 64u : 4096u);
    auto mapping = Mapping::open(std::move(medium.value()), options);
    ASSERT_TRUE(mapping.ok()) << mapping.status().text();
    for (std::uint64_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(mapping.value()->write(life * 10 + i, bytes_of("c")).ok());
      ASSERT_TRUE(mapping.value()->commit_all().ok());
      wanted[life * 10 + i] = 'c';
    }
    // A crash: nothing is closed.
  }
  auto medium = open_medium(path_, false, MediumKind::automatic);
  ASSERT_TRUE(medium.ok());
  ASSERT_TRUE(recover(*medium.value()).ok());
  EXPECT_EQ(test::read_file(path_), wanted);
}

// Windows are large, and there are two for each file: they must not take the addresses that the
// mappings themselves, and heaps above all, have to have.
TEST_F(PersistentMediumTest, AsManyAsAProcessMayHaveLeaveRoomForMappings) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer leaves too few addresses";
#endif
  std::vector<std::unique_ptr<Mapping>> mappings;
  Options options;
  options.tracker = TrackerChoice::store;
  options.journal_size_bytes = kJournalSizeMin;
  for (std::size_t i = 0; i < open_mappings::kOpenMappingsMax; ++i) {
    const std::string path = directory_ / ("file" + std::to_string(i));
    test::write_file(path, std::string(kPageBytes, 'a'));
    auto medium = open_persistent_medium(path);
    ASSERT_TRUE(medium.ok()) << i << ": " << medium.status().text();
    auto mapping = Mapping::open(std::move(medium.value()), options);
    ASSERT_TRUE(mapping.ok()) << i << ": " << mapping.status().text();
    const auto at = mapping.value()->map_window(nullptr, kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
    ASSERT_TRUE(at.ok()) << i << ": " << at.status().text();
    mappings.push_back(std::move(mapping.value()));
  }
  std::ifstream areas("/proc/self/maps");
  for (std::string area; std::getline(areas, area);) {
    if (area.find(" rw-s ") == std::string::npos) continue;
    EXPECT_GE(std::stoull(area, nullptr, 16), kStoreMappingsEnd) << area;
  }
}

TEST(OpenMedium, SaysWhatToDoWithoutPersistentMemory) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  test::write_file(path, "x");
  EXPECT_TRUE(open_medium(path, false, MediumKind::automatic).ok());
  EXPECT_TRUE(open_medium(path, false, MediumKind::block).ok());
  const auto opened = open_medium(path, false, MediumKind::memory);
  if (opened.ok()) GTEST_SKIP() << "the tests' directory is in memory";
  EXPECT_EQ(opened.status().error_number(), EOPNOTSUPP);
  for (const char* const part : {path.c_str(), "MAP_SYNC", "PAWL_MEDIUM=auto", "dax", "/dev/shm"})
    EXPECT_NE(opened.status().text().find(part), std::string::npos) << opened.status().text();
}

TEST(OpenMedium, LooksWithoutMappingAnything) {
  const TemporaryDirectory directory("/dev/shm");
  const std::string path = directory / "file";
  test::write_file(path, "x");
  const auto opened = open_medium(path, true, MediumKind::memory);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(opened.value()->base().in_place(), nullptr);
  EXPECT_EQ(opened.value()->acquire_journal(true).status().error_number(), EROFS);
}

TEST(OpenMedium, RefusesALatencyThatIsNone) {
  const TemporaryDirectory directory("/dev/shm");
  const std::string path = directory / "file";
  test::write_file(path, "x");
  ::setenv("PAWL_EMULATE_FENCE_NS", "5", 1);
  EXPECT_EQ(open_medium(path, false, MediumKind::memory).status().error_number(), EINVAL);
  EXPECT_TRUE(open_medium(path, false, MediumKind::block).ok());
  ::unsetenv("PAWL_EMULATE_FENCE_NS");
}

// ----------------------------------------------------------------------------- fences and flushes

// A file of nothing but its size, which counts.
class CountingFile final : public MediumFile {
 public:
  Status read(std::uint64_t, std::span<std::byte>) override { return count(reads); }
  Status write(std::uint64_t, std::span<const std::byte>) override { return count(writes); }
  Status flush() override {
    flushes += 1;
    if (during_flush) during_flush();
    return next_flush;
  }
  Result<std::uint64_t> size() override { return size_bytes; }
  Status resize(std::uint64_t to) override {
    size_bytes = to;
    return {};
  }
  Status reserve(std::uint64_t, std::uint64_t) override { return count(reservations); }
  Status punch(std::uint64_t, std::uint64_t) override { return {}; }
  Status zero(std::uint64_t, std::uint64_t) override { return count(writes); }
  Result<std::uint64_t> allocated_prefix_bytes() override { return std::uint64_t{0}; }

  std::uint64_t size_bytes = 0;
  int reads = 0;
  int writes = 0;
  int flushes = 0;
  int reservations = 0;
  Status next_flush;
  std::function<void()> during_flush;

 private:
  static Status count(int& counter) {
    counter += 1;
    return {};
  }
};

class CountingMemory final : public PersistentMemory {
 public:
  void copy(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }
  void flush(const std::byte*, std::size_t) override {}
  void fence() override { fences += 1; }
  int fences = 0;
};

class PersistentFileTest : public testing::Test {
 protected:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(16 * kPageBytes);
  CountingFile beneath_;
  std::shared_ptr<CountingMemory> memory_ = std::make_shared<CountingMemory>();
  PersistentFile file_{beneath_, MemoryWindow::borrowed(bytes_.data(), bytes_.size()), memory_,
                       "the file"};
};

// A process that died may have changed size or space, and not have flushed that.
TEST_F(PersistentFileTest, IsTakenForChangedWhenItIsOpened) {
  ASSERT_TRUE(file_.flush().ok());
  EXPECT_EQ(beneath_.flushes, 1);
  ASSERT_TRUE(file_.flush().ok());
  EXPECT_EQ(beneath_.flushes, 1);
  file_.forget();
  ASSERT_TRUE(file_.flush().ok());
  EXPECT_EQ(beneath_.flushes, 2);
}

TEST_F(PersistentFileTest, ACommitIsOneFenceAndNoCall) {
  ASSERT_TRUE(file_.write(0, std::vector<std::byte>(kPageBytes)).ok());
  ASSERT_TRUE(file_.flush().ok());
  const int flushes = beneath_.flushes;
  const int reservations = beneath_.reservations;
  memory_->fences = 0;
  ASSERT_TRUE(file_.write_durably(64, bytes_of("record")).ok());
  EXPECT_EQ(memory_->fences, 1);
  ASSERT_TRUE(file_.write(128, bytes_of("base")).ok());
  EXPECT_EQ(memory_->fences, 1);
  EXPECT_EQ(text_at(file_, 64, 6), "record");
  EXPECT_EQ(beneath_.flushes, flushes);
  EXPECT_EQ(beneath_.reservations, reservations);
  EXPECT_EQ(beneath_.reads + beneath_.writes, 0);
}

TEST_F(PersistentFileTest, FlushesWhatIsNoByteWhenItChanged) {
  ASSERT_TRUE(file_.flush().ok());
  int flushes = beneath_.flushes;
  const auto expect_flushed = [&] {
    ASSERT_TRUE(file_.flush().ok());
    EXPECT_EQ(beneath_.flushes, ++flushes);
    ASSERT_TRUE(file_.flush().ok());
    EXPECT_EQ(beneath_.flushes, flushes);
  };
  ASSERT_TRUE(file_.write(100, bytes_of("grows")).ok());
  EXPECT_EQ(beneath_.size_bytes, 105u);
  expect_flushed();
  ASSERT_TRUE(file_.resize(50).ok());
  expect_flushed();
  ASSERT_TRUE(file_.reserve(8 * kPageBytes, 1).ok());
  expect_flushed();
  ASSERT_TRUE(file_.punch(0, 10).ok());
  expect_flushed();
  file_.changed_beneath();
  expect_flushed();
}

TEST_F(PersistentFileTest, TellsOfAFlushThatFailed) {
  beneath_.next_flush = Status::failure(EIO, "made up");
  EXPECT_EQ(file_.flush().error_number(), EIO);
  // Nor does the next flush leave it out.
  EXPECT_EQ(file_.flush().error_number(), EIO);
}

TEST_F(PersistentFileTest, FlushesWhatChangedDuringAFlush) {
  ASSERT_TRUE(file_.flush().ok());
  file_.changed_beneath();
  beneath_.during_flush = [this] { file_.changed_beneath(); };
  const int flushes = beneath_.flushes;
  ASSERT_TRUE(file_.flush().ok());
  beneath_.during_flush = {};
  ASSERT_TRUE(file_.flush().ok());
  EXPECT_EQ(beneath_.flushes, flushes + 2);
}

TEST_F(PersistentFileTest, DoesNotOutgrowItsWindow) {
  const std::uint64_t end = bytes_.size();
  EXPECT_EQ(file_.write(end - 1, bytes_of("xy")).error_number(), EFBIG);
  EXPECT_EQ(file_.resize(end + 1).error_number(), EFBIG);
  EXPECT_EQ(file_.resize(end + 1).code(), PAWL_ERROR_REOPEN_TO_GROW);
  EXPECT_EQ(file_.reserve(end, 1).error_number(), EFBIG);
  EXPECT_NE(file_.reserve(~std::uint64_t{0}, 1).text().find("the file cannot grow"),
            std::string::npos);
  EXPECT_TRUE(file_.write(end - 2, bytes_of("xy")).ok());
}

// ---------------------------------------------------------------------------------------- ranges

TEST(ByteRanges, AreWhatASetOfBytesIs) {
  std::mt19937 random(3);
  ByteRanges ranges;
  std::vector<bool> model(64);
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t start = random() % 64;
    const std::uint64_t end = start + random() % (65 - start);
    const bool adds = random() % 2 == 0;
    if (adds)
      ranges.add(start, end);
    else
      ranges.remove(start, end);
    for (std::uint64_t at = start; at < end; ++at) model[at] = adds;
    const std::uint64_t from = random() % 64;
    const std::uint64_t to = from + random() % (65 - from);
    bool all = true;
    for (std::uint64_t at = from; at < to; ++at) all = all && model[at];
    ASSERT_EQ(ranges.contains(from, to), all) << round;
  }
}

}  // namespace
}  // namespace pawl
