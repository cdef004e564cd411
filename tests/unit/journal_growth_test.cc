// A journal begins small, and its ring grows while it is used.
#include <sys/resource.h>
#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/record_builder.h"
#include "mapping/group.h"
#include "mapping/statistics.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

using journal::Journal;
using journal::kAreaStart;
using test::Act;
using test::Event;
using test::Opened;
using test::options_for;
using test::read_file;
using test::TemporaryDirectory;
using test::Watch;
using test::Which;
using test::write_file;

constexpr std::uint64_t kFirst = kJournalSizeMin;
constexpr std::uint64_t kNext = kFirst * journal::kGrowthFactor;
constexpr FileIdentity kOfFile{.inode = 7, .birth_time_ns = 1'700'000'000'000'000'000};

// What a crash leaves of a file, and what was done to it.
class StableFile {
 public:
  struct Change {
    std::optional<std::uint64_t> size;  // none: it is a write
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes = {};
  };
  using Bytes = std::vector<std::byte>;

  std::mutex mutex;
  Bytes now;
  Bytes durable;
  std::vector<Change> pending;
  std::vector<std::string> acts;
  std::uint64_t free = MediumFile::kNotBounded;
  std::function<Status(Act)> judge = [](Act) { return Status{}; };
  std::function<void()> changed = [] {};

  static void apply(Bytes& bytes, const Change& change) {
    if (change.size.has_value()) return bytes.resize(*change.size);
    bytes.resize(std::max<std::size_t>(bytes.size(), change.offset + change.bytes.size()));
    std::copy(change.bytes.begin(), change.bytes.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(change.offset));
  }
  void change(Change change) {
    apply(now, change);
    pending.push_back(std::move(change));
    changed();
  }
  // Of what is on its way, all, nothing, only sizes, or only what stands within the durable size.
  std::vector<Bytes> after_a_crash() const {
    std::vector<Bytes> states(4, durable);
    for (const Change& one : pending) {
      apply(states[0], one);
      if (one.size.has_value()) apply(states[1], one);
      if (!one.size.has_value() && one.offset + one.bytes.size() <= durable.size())
        apply(states[2], one);
    }
    return states;
  }
};

class OpenStableFile final : public MediumFile {
 public:
  explicit OpenStableFile(StableFile& file) : file_(file) {}

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    const std::lock_guard lock(file_.mutex);
    std::fill(into.begin(), into.end(), std::byte{0});
    if (offset < file_.now.size()) {
      std::memcpy(into.data(), file_.now.data() + offset,
                  std::min<std::size_t>(into.size(), file_.now.size() - offset));
    }
    return {};
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    const std::lock_guard lock(file_.mutex);
    PAWL_TRY(file_.judge(Act::write));
    file_.acts.push_back(offset < kAreaStart ? "header" : "write");
    file_.change({{}, offset, {from.begin(), from.end()}});
    return {};
  }
  Status flush() override {
    const std::lock_guard lock(file_.mutex);
    PAWL_TRY(file_.judge(Act::flush));
    file_.acts.emplace_back("flush");
    file_.durable = file_.now;
    file_.pending.clear();
    return {};
  }
  Result<std::uint64_t> size() override {
    const std::lock_guard lock(file_.mutex);
    return std::uint64_t{file_.now.size()};
  }
  Status resize(std::uint64_t size_bytes) override {
    const std::lock_guard lock(file_.mutex);
    file_.acts.emplace_back("resize");
    file_.change({size_bytes});
    return {};
  }
  Status reserve(std::uint64_t, std::uint64_t) override {
    const std::lock_guard lock(file_.mutex);
    PAWL_TRY(file_.judge(Act::reserve));
    file_.acts.emplace_back("reserve");
    return {};
  }
  std::uint64_t free_bytes() override { return file_.free; }
  Status punch(std::uint64_t, std::uint64_t) override { return {}; }
  Status zero(std::uint64_t, std::uint64_t) override { return {}; }
  Result<std::uint64_t> allocated_prefix_bytes() override { return size(); }

 private:
  StableFile& file_;
};

// A journal with records whose content is their sequence number.
class Ring {
 public:
  explicit Ring(std::uint64_t bytes_max, std::uint64_t block_bytes = journal::kBlockBytes)
      : block_bytes_(block_bytes) {
    auto made = Journal::format(std::make_unique<OpenStableFile>(file), {}, kOfFile, 0, 1, kFirst,
                                block_bytes);
    EXPECT_TRUE(made.ok()) << made.status().text();
    journal_ = std::move(made.value());
    journal_->may_grow_to(bytes_max);
    // As it is when it gets its name.
    file.durable = file.now;
    file.pending.clear();
    file.acts.clear();
  }

  Journal* operator->() const { return journal_.get(); }

  // One of so many bytes of content; false: there was no room.
  bool commit(std::uint64_t bytes) {
    journal::RecordBuilder record(block_bytes_);
    fill(record, bytes);
    const auto place = journal_->reserve(record.record_bytes());
    if (!place.has_value()) return false;
    write(record, *place);
    return true;
  }
  void commit_oversize(std::uint64_t bytes) {
    journal::RecordBuilder record(block_bytes_);
    fill(record, bytes);
    auto place = journal_->reserve_oversize();
    ASSERT_TRUE(place.ok()) << place.status().text();
    const Status extended = journal_->extend(place.value(), record.record_bytes());
    ASSERT_TRUE(extended.ok()) << extended.text();
    journal_->settle(place.value());
    write(record, place.value());
  }
  void release(std::uint64_t through) {
    const Status released = journal_->release(through);
    ASSERT_TRUE(released.ok()) << released.text();
    released_ = std::max(released_, through);
  }
  Status grow() {
    for (;;) {
      auto grown = journal_->grow();
      if (!grown.ok() || !grown.value()) return grown.status();
    }
  }

  // Every record that was acknowledged and not released is found, in whatever a crash leaves.
  void expect_all_found() const {
    for (const StableFile::Bytes& left : file.after_a_crash()) expect_all_found(left);
  }
  void expect_all_found(const StableFile::Bytes& left) const {
    StableFile crashed;
    crashed.now = left;
    OpenStableFile open(crashed);
    auto reader = journal::Reader::open(open);
    ASSERT_TRUE(reader.ok()) << reader.status().text();
    std::uint64_t last = reader.value().header().tail_sequence - 1;
    EXPECT_LE(last, released_);
    for (;;) {
      auto record = reader.value().next();
      ASSERT_TRUE(record.ok());
      if (!record.value().has_value()) break;
      last = record.value()->header.sequence;
    }
    EXPECT_GE(last, acknowledged_) << reader.value().end_reason();
    auto evidence = reader.value().evidence_of_loss();
    ASSERT_TRUE(evidence.ok());
    EXPECT_EQ(evidence.value().text, "");
  }

  StableFile file;

 private:
  static void fill(journal::RecordBuilder& record, std::uint64_t bytes) {
    const std::vector<std::byte> content(bytes, std::byte{'x'});
    ASSERT_TRUE(record.add(0, content).ok());
  }
  void write(journal::RecordBuilder& record, const journal::Place& place) {
    journal::RecordHeader header;
    header.epoch = journal_->epoch();
    header.sequence = place.sequence;
    header.file_size = std::uint64_t{1} << 30;
    header.header_generation = journal_->header_generation();
    header.durable_sequence = acknowledged_;
    ASSERT_TRUE(record.finish(header).ok());
    ASSERT_TRUE(journal_->write_durably(place, record.block()).ok());
    acknowledged_ = place.sequence;
  }

  const std::uint64_t block_bytes_;
  std::unique_ptr<Journal> journal_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t released_ = 0;
};

using Acts = std::vector<std::string>;

TEST(JournalGrowth, IsAskedForWhenHalfOfTheRingIsUsed) {
  Ring ring(kNext);
  while (ring->used_bytes() * 2 <= ring->capacity_bytes()) {
    EXPECT_FALSE(ring->wants_growth());
    ASSERT_TRUE(ring.commit(100));
  }
  EXPECT_TRUE(ring->wants_growth());
  ASSERT_TRUE(ring.grow().ok());
  EXPECT_FALSE(ring->wants_growth());
  EXPECT_EQ(ring->capacity_bytes(), kNext - kAreaStart);
}

TEST(JournalGrowth, NeverPassesTheConfiguredSize) {
  Ring ring(2 * kFirst);
  while (ring.commit(100)) continue;
  ASSERT_TRUE(ring.grow().ok());
  EXPECT_EQ(ring->size_bytes(), 2 * kFirst);
  while (ring.commit(100)) continue;
  EXPECT_FALSE(ring->wants_growth());
  ASSERT_TRUE(ring.grow().ok());
  EXPECT_EQ(ring->size_bytes(), 2 * kFirst);
}

TEST(JournalGrowth, IsDurableBeforeItsHeaderAndThatBeforeARecordIsThere) {
  Ring ring(kNext);
  while (ring.commit(100)) continue;
  ring.file.acts.clear();
  ASSERT_TRUE(ring.grow().ok());
  EXPECT_EQ(ring.file.acts, (Acts{"reserve", "resize", "write", "flush", "header", "flush"}));
  ASSERT_TRUE(ring.commit(100));
}

TEST(JournalGrowth, WritesNoMoreThanAPieceBetweenTwoFlushes) {
  constexpr std::uint64_t kPieces = 3;
  Ring ring(kNext + kPieces * journal::kGrowthPieceBytes);
  for (std::uint64_t step : {std::uint64_t{1}, kPieces}) {
    while (!ring->wants_growth()) ASSERT_TRUE(ring.commit(100));
    for (; ring->wants_growth(); --step) {
      ring.file.acts.clear();
      ASSERT_TRUE(ring->grow().ok());
      EXPECT_EQ(std::count(ring.file.acts.begin(), ring.file.acts.end(), "write"), 1);
      ring.expect_all_found();
    }
    EXPECT_EQ(step, 0u);
  }
}

TEST(JournalGrowth, LosesNothingWhateverACrashLeaves) {
  Ring ring(8 * kNext);
  ring.file.changed = [&] { ring.expect_all_found(); };
  std::uint64_t sequence = 0;
  for (unsigned i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    if (!ring.commit(5000 + 700 * i)) {
      ring.release(sequence);
      continue;
    }
    sequence += 1;
    if (i % 5 == 4) {
      EXPECT_TRUE(ring->grow().ok());
    }
  }
  EXPECT_GT(ring->capacity_bytes(), kNext - kAreaStart);
}

// The ring goes round with its oldest records at the end of the small one.
TEST(JournalGrowth, OfARingThatGoesRoundKeepsWhatItHolds) {
  Ring ring(kNext);
  while (ring.commit(kPageBytes)) continue;
  ring.release(4);
  ASSERT_TRUE(ring.commit(kPageBytes));
  const std::uint64_t used = ring->used_bytes();
  ASSERT_TRUE(ring.grow().ok());
  EXPECT_EQ(ring->used_bytes(), used);
  ring.expect_all_found();
  while (ring.commit(kPageBytes)) continue;
  ring.release(7);
  // Now it goes on behind the front, into the new part.
  while (ring.commit(kPageBytes)) continue;
  EXPECT_GT(ring->used_bytes(), kFirst);
  ring.expect_all_found();
}

TEST(JournalGrowth, WithoutRoomIsNoFailureAndIsTriedAgainWhenTheRingWentRound) {
  for (const bool is_seen : {true, false}) {
    Ring ring(kNext);
    if (is_seen)
      ring.file.free = kNext;
    else
      ring.file.judge = [](Act act) {
        return act == Act::reserve ? Status::failure(ENOSPC, "made up") : Status{};
      };
    std::uint64_t sequence = 0;
    while (ring.commit(100)) sequence += 1;
    ASSERT_TRUE(ring->wants_growth());
    ASSERT_TRUE(ring.grow().ok());
    EXPECT_FALSE(ring->wants_growth());
    EXPECT_EQ(ring.file.now.size(), kFirst);
    // It goes on small.
    EXPECT_FALSE(ring.commit(100));
    EXPECT_FALSE(ring->wants_growth());
    ring.release(sequence);
    ring.file.free = 100 * kNext;
    ring.file.judge = [](Act) { return Status{}; };
    while (ring.commit(100)) continue;
    ASSERT_TRUE(ring->wants_growth());
    ASSERT_TRUE(ring.grow().ok());
    EXPECT_EQ(ring.file.now.size(), kNext);
    ring.expect_all_found();
  }
}

TEST(JournalGrowth, ThatCannotWriteZerosIsGivenUpAndCommitsGoOn) {
  Ring ring(kNext);
  while (ring->used_bytes() * 2 <= ring->capacity_bytes()) ASSERT_TRUE(ring.commit(100));
  ring.file.judge = [](Act act) {
    return act == Act::write ? Status::failure(EIO, "made up") : Status{};
  };
  ASSERT_TRUE(ring.grow().ok());
  ring.file.judge = [](Act) { return Status{}; };
  EXPECT_EQ(ring->capacity_bytes(), kFirst - kAreaStart);
  EXPECT_TRUE(ring.commit(100));
  ring.expect_all_found();
}

TEST(JournalGrowth, WhoseFlushFailsIsFinal) {
  Ring ring(kNext);
  while (ring.commit(100)) continue;
  ring.file.judge = [](Act act) {
    return act == Act::flush ? Status::failure(EIO, "made up") : Status{};
  };
  EXPECT_EQ(ring.grow().error_number(), EIO);
  ring.file.judge = [](Act) { return Status{}; };
  EXPECT_EQ(ring->flush().error_number(), EIO);
}

// What a large record was written to is not written again.
TEST(JournalGrowth, TakesWhatALargeRecordWrote) {
  for (const std::uint64_t block_bytes : {journal::kBlockBytes, std::uint64_t{kLineBytes}}) {
    Ring ring(kNext, block_bytes);
    ring.commit_oversize(kNext - kAreaStart - 3 * kPageBytes);
    EXPECT_FALSE(ring->has_outgrown());
    ring.expect_all_found();
    ASSERT_TRUE(ring->wants_growth());
    ASSERT_TRUE(ring.grow().ok());
    EXPECT_EQ(ring->capacity_bytes(), kNext - kAreaStart);
    ring.expect_all_found();
    ring.release(1);
    while (ring.commit(100)) continue;
    ring.expect_all_found();
  }
}

// The zeros of a step went over a large record that was written and not counted yet, and was then
// acknowledged.
TEST(JournalGrowth, WroteZerosOverALargeRecordThatWasJustWritten) {
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    Ring ring(kNext);
    auto place = ring->reserve_oversize();
    const std::vector<std::byte> record(2 * kFirst, std::byte{'x'});
    ASSERT_TRUE(place.ok() && ring->extend(place.value(), record.size()).ok() &&
                ring->write(place.value(), 0, record).ok());
    // Whoever asks for the ring's books waits for this one, who has them, so that both come to them
    // at once.
    std::atomic<bool> has_books{false};
    ring->keep_what_is_held([&] {
      has_books = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      return std::uint64_t{0};
    });
    std::thread reader([&] { EXPECT_FALSE(ring->reserve(kFirst).has_value()); });
    while (!has_books) std::this_thread::yield();
    std::thread grower([&] { EXPECT_TRUE(ring.grow().ok()); });
    ring->settle(place.value());
    grower.join();
    reader.join();
    std::vector<std::byte> found(record.size());
    EXPECT_TRUE(OpenStableFile(ring.file).read(kAreaStart, found).ok());
    EXPECT_TRUE(found == record) << "in round " << round;
  }
}

TEST(JournalGrowth, LeavesAloneARecordThatIsWrittenBehindTheRing) {
  Ring ring(kNext);
  auto place = ring->reserve_oversize();
  ASSERT_TRUE(place.ok());
  ASSERT_TRUE(ring->extend(place.value(), 2 * kFirst).ok());
  ring.file.acts.clear();
  ASSERT_TRUE(ring.grow().ok());
  EXPECT_EQ(ring.file.acts, Acts{});
  // It comes to nothing, and its space goes back.
  ring->cancel(place.value());
  ASSERT_TRUE(ring->give_growth_back().ok());
  EXPECT_EQ(ring.file.now.size(), kFirst);
  while (ring.commit(100)) continue;
  ASSERT_TRUE(ring.grow().ok());
  EXPECT_EQ(ring->capacity_bytes(), kNext - kAreaStart);
}

TEST(JournalGrowth, OfARecordLargerThanAnyRingIsGivenBackToTheConfiguredSize) {
  Ring ring(kNext);
  ring.commit_oversize(2 * kNext);
  EXPECT_TRUE(ring->has_outgrown());
  ring.release(1);
  ASSERT_TRUE(ring->give_growth_back().ok());
  EXPECT_EQ(ring.file.now.size(), kNext);
  EXPECT_EQ(ring->capacity_bytes(), kNext - kAreaStart);
  ring.expect_all_found();
}

// A record behind the ring is flushed alone: what was still on its way cut it off.
TEST(JournalGrowth, BeginsWhenAnEarlierCutIsDurable) {
  Ring ring(kNext);
  ring.commit_oversize(2 * kNext);
  ring.release(1);
  ASSERT_TRUE(ring->give_growth_back().ok());
  EXPECT_TRUE(ring.file.pending.empty());
  // Nor may the cut of a journal that a crash left.
  auto anew = Journal::format(std::make_unique<OpenStableFile>(ring.file), {}, kOfFile, 9, 2,
                              kFirst, journal::kBlockBytes);
  ASSERT_TRUE(anew.ok()) << anew.status().text();
  EXPECT_EQ(ring.file.now.size(), kFirst);
  EXPECT_TRUE(ring.file.pending.empty());
}

// Records that are read are kept behind the ring.
TEST(JournalGrowth, KeepsWhatIsHeld) {
  Ring ring(4 * kFirst);
  ring->keep_what_is_held([] { return std::uint64_t{1}; });
  std::uint64_t sequence = 0;
  while (ring.commit(kPageBytes)) sequence += 1;
  ring.release(sequence);
  for (int i = 0; i < 30 && !testing::Test::HasFailure(); ++i) {
    if (!ring.commit(kPageBytes)) {
      ASSERT_TRUE(ring->can_grow());
      ring.commit_oversize(kPageBytes);
    }
    if (i % 4 == 0) {
      EXPECT_TRUE(ring.grow().ok());
    }
    ring.expect_all_found();
  }
  // The reader still finds the first of them.
  OpenStableFile open(ring.file);
  auto reader = journal::Reader::open(open);
  ASSERT_TRUE(reader.ok());
  reader.value().begin_at(kAreaStart, 1);
  std::uint64_t found = 0;
  for (;;) {
    auto record = reader.value().next();
    ASSERT_TRUE(record.ok());
    if (!record.value().has_value()) break;
    found += 1;
  }
  EXPECT_EQ(found, ring->last_sequence());
}

// -------------------------------------------------------------------------------- with a mapping

std::uint64_t allocated_bytes(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512
                                            : 0;
}

Options default_options() { return Options::from_environment().value(); }

TEST(OpeningASmallFile, WritesLittle) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, std::string(16 * kPageBytes, 'a'));
  auto watch = std::make_shared<Watch>();
  Opened opened(path, default_options(), watch);
  opened.bytes()[0] = 'b';
  ASSERT_TRUE(opened.commit().ok());
  ASSERT_TRUE(opened->close().ok());
  std::uint64_t written = 0;
  std::uint64_t flushes = 0;
  for (const Event& event : watch->take_events()) {
    if (event.act == Act::write) written += event.length;
    if (event.act == Act::flush) flushes += 1;
  }
  // The journal, its headers, the record and the page; one flush less than 32 MiB.
  EXPECT_LE(written, kFirst + 8 * kPageBytes);
  EXPECT_LE(flushes, 16u);
}

TEST(OpeningASmallFile, TwoHundredTimesTakesLittleSpace) {
  constexpr unsigned kFiles = 200;
  constexpr rlim_t kDescriptors = 4096;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kDescriptors));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const TemporaryDirectory directory;
  std::deque<Opened> opened;
  std::uint64_t taken = 0;
  for (unsigned i = 0; i < kFiles; ++i) {
    const std::string path = directory / ("file" + std::to_string(i));
    write_file(path, std::string(16 * kPageBytes, 'a'));
    opened.emplace_back(path, default_options());
    ASSERT_NE(opened.back().bytes(), nullptr);
    opened.back().bytes()[i] = 'b';
    ASSERT_TRUE(opened.back().commit().ok());
    taken += allocated_bytes(path + ".pawl");
  }
  EXPECT_LE(taken, kFiles * 2 * kFirst);
  for (Opened& one : opened) ASSERT_TRUE(one->close().ok());
}

TEST(OpeningALargeFile, TakesAShareOfItWithinTheConfiguredSize) {
  Options options = default_options();
  EXPECT_EQ(options.first_journal_bytes(0), kJournalSizeMin);
  EXPECT_EQ(options.first_journal_bytes(std::uint64_t{1} << 30), std::uint64_t{1} << 20);
  EXPECT_EQ(options.first_journal_bytes(std::uint64_t{1} << 40), kJournalSizeDefault);
  options.journal_size_bytes = kJournalSizeMin;
  EXPECT_EQ(options.first_journal_bytes(std::uint64_t{1} << 40), kJournalSizeMin);
  // Commits that are flushed when the power fails do not wait for zeros.
  options.journal_size_bytes = kJournalSizeDefault;
  options.durability = DurabilityChoice::on_fail;
  EXPECT_EQ(options.first_journal_bytes(0), kJournalSizeDefault);
}

std::uint64_t journal_bytes(const Opened& opened) {
  MappingStatistics statistics;
  opened->statistics(statistics);
  return statistics.journal_size_bytes;
}

void commit_until(const Opened& opened, const std::function<bool()>& is_enough) {
  constexpr int kCommitsMax = 100'000;
  for (int i = 0; i < kCommitsMax && !is_enough(); ++i) {
    std::memset(opened.bytes() + i % 16 * kPageBytes, 'b' + i % 20, kPageBytes);
    const Status committed = opened.commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
  }
  EXPECT_TRUE(is_enough());
}

TEST(AJournalInUse, ReachesItsSizeAndStaysThereUntilTheClose) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, std::string(16 * kPageBytes, 'a'));
  Options options = options_for(ApplyChoice::async);
  options.journal_size_bytes = std::uint64_t{4} << 20;
  Opened opened(path, options);
  EXPECT_EQ(journal_bytes(opened), kJournalSizeMin);
  commit_until(opened, [&] { return journal_bytes(opened) == options.journal_size_bytes; });
  ASSERT_TRUE(opened.commit().ok());
  EXPECT_EQ(journal_bytes(opened), options.journal_size_bytes);
  const std::string content(opened.bytes(), 16 * kPageBytes);
  opened.crash();
  // Recovery reads it whole; and the next life begins small again.
  Opened again(path, options);
  EXPECT_EQ(std::string(again.bytes(), 16 * kPageBytes), content);
  EXPECT_EQ(journal_bytes(again), kJournalSizeMin);
  ASSERT_TRUE(again->close().ok());
  EXPECT_EQ(read_file(path), content);
}

TEST(AJournalInUse, GoesOnSmallWithoutSpaceToGrow) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, std::string(16 * kPageBytes, 'a'));
  auto watch = std::make_shared<Watch>();
  Opened opened(path, options_for(ApplyChoice::async), watch);
  std::atomic<unsigned> refused{0};
  watch->judge_with([&](const Event& event) {
    if (event.which != Which::journal || event.act != Act::reserve) return Status{};
    refused += 1;
    return Status::failure(ENOSPC, "made up");
  });
  commit_until(opened, [&] { return refused >= 3; });
  EXPECT_EQ(journal_bytes(opened), kJournalSizeMin);
  watch->judge_with({});
  commit_until(opened, [&] { return journal_bytes(opened) == std::uint64_t{1} << 20; });
  ASSERT_TRUE(opened->close().ok());
}

TEST(AJournalInUse, OfAGroupGrows) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file(path, std::string(16 * kPageBytes, 'a'));
  Options options = options_for(ApplyChoice::async);
  options.journal_size_bytes = std::uint64_t{1} << 20;
  auto group = Group::open(directory / "group", options);
  ASSERT_TRUE(group.ok()) << group.status().text();
  auto medium = open_block_medium(path, false);
  ASSERT_TRUE(medium.ok());
  auto file = Group::join(group.value(), std::move(medium.value()));
  ASSERT_TRUE(file.ok()) << file.status().text();
  const std::string side = directory / "group.pawl";
  EXPECT_EQ(read_file(side).size(), kJournalSizeMin);
  std::string filling(kPageBytes, 'b');
  for (int i = 0; i < 100'000 && read_file(side).size() < options.journal_size_bytes; ++i) {
    filling[0] = static_cast<char>('b' + i % 20);
    ASSERT_TRUE(file.value()->write(0, std::as_bytes(std::span(filling))).ok());
    ASSERT_TRUE(group.value()->commit().ok());
  }
  EXPECT_EQ(read_file(side).size(), options.journal_size_bytes);
  ASSERT_TRUE(file.value()->close().ok());
  ASSERT_TRUE(group.value()->close().ok());
  EXPECT_EQ(read_file(path).substr(0, kPageBytes), filling);
}

}  // namespace
}  // namespace pawl
