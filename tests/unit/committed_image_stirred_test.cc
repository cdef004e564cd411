// The committed image in a storm: while it writes to the base, commits arrive, writes fail half way
// and the process dies.  What the journal still has to hold, replayed onto what the base has at any
// such moment, is what the last durable commit left.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "journal/committed_image.h"
#include "workload/random.h"

namespace pawl {
namespace {

constexpr std::uint64_t kPagesMax = 10;
constexpr int kCommits = 60;
constexpr unsigned kSeeds = 200;

// A file in memory whose operations may fail.
class StormyFile final : public MediumFile {
 public:
  explicit StormyFile(std::string bytes) : bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }
  // Called before a write of so many bytes; returns how many of them are written.  Fewer: it fails.
  std::function<std::size_t(std::size_t)> on_write;
  // Whether another operation fails.
  std::function<bool()> refuses;

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    std::fill(into.begin(), into.end(), std::byte{0});
    if (offset < bytes_.size())
      std::memcpy(into.data(), bytes_.data() + offset,
                  std::min<std::size_t>(into.size(), bytes_.size() - offset));
    return {};
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    const std::size_t count = on_write ? on_write(from.size()) : from.size();
    if (count > 0) {
      bytes_.resize(std::max<std::size_t>(bytes_.size(), offset + count), '\0');
      std::memcpy(bytes_.data() + offset, from.data(), count);
    }
    return count == from.size() ? Status{} : no_space();
  }
  Status flush() override { return {}; }
  Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }
  Status resize(std::uint64_t size_bytes) override {
    if (refuses && refuses()) return no_space();
    bytes_.resize(size_bytes, '\0');
    return {};
  }
  Status reserve(std::uint64_t, std::uint64_t) override {
    return refuses && refuses() ? no_space() : Status{};
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override { return zero(offset, length); }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    if (refuses && refuses()) return no_space();
    const std::uint64_t end = std::min<std::uint64_t>(offset + length, bytes_.size());
    if (offset < end) std::memset(bytes_.data() + offset, 0, end - offset);
    return {};
  }
  Result<std::uint64_t> allocated_prefix_bytes() override { return std::uint64_t{0}; }

 private:
  static Status no_space() { return FailedCall{ENOSPC, "no space"}; }

  std::string bytes_;
};

struct Record {
  std::uint64_t sequence = 0;
  std::uint64_t truncate_to = journal::kNoTruncation;
  std::uint64_t file_size = 0;
  std::vector<std::pair<std::uint64_t, std::string>> ranges;
};

void replay(const Record& record, std::string& file) {
  if (record.truncate_to < file.size()) file.resize(record.truncate_to);
  file.resize(record.file_size, '\0');
  for (const auto& [offset, bytes] : record.ranges) file.replace(offset, bytes.size(), bytes);
}

class Storm {
 public:
  Storm(unsigned seed, unsigned one_fails_of)
      : random_(seed),
        one_fails_of_(one_fails_of),
        now_(1 + below(8 * kPageBytes), 'a'),
        base_(now_),
        image_(base_, now_.size(), 0) {
    as_of_[0] = now_;
    base_.on_write = [this](std::size_t bytes) { return write_begins(bytes); };
    base_.refuses = [this] { return one_fails_of_ > 0 && below(one_fails_of_) == 0; };
  }

  void pass() {
    for (int i = 0; i < kCommits && !testing::Test::HasFatalFailure(); ++i) {
      commit();
      if (below(4) == 0) become_durable();
      if (below(3) == 0) [[maybe_unused]]
        const Status applied = image_.apply();
      if (below(4) == 0) expect_now();
      expect_a_crash_loses_nothing();
    }
    if (testing::Test::HasFatalFailure()) return;
    base_.on_write = nullptr;
    base_.refuses = nullptr;
    become_durable();
    ASSERT_TRUE(image_.apply().ok());
    EXPECT_EQ(image_.waiting_pages(), 0u);
    EXPECT_EQ(image_.applied_sequence(), durable_);
    ASSERT_TRUE(base_.bytes() == now_);
    expect_now();
  }

 private:
  struct Change {
    std::uint64_t page;
    std::uint64_t lines;
    CommittedImage::Page committed;  // null where the marks are enough
  };

  std::uint64_t below(std::uint64_t bound) { return test::below(random_, bound); }

  void become_durable() {
    durable_ = next_sequence_ - 1;
    image_.durable(durable_);
  }

  // The program goes on while a page is on its way into the base.
  std::size_t write_begins(std::size_t bytes) {
    while (below(3) == 0 && !testing::Test::HasFatalFailure()) {
      commit();
      if (below(3) == 0) expect_now();
    }
    if (below(3) == 0) become_durable();
    expect_a_crash_loses_nothing();
    return one_fails_of_ > 0 && below(one_fails_of_) == 0 ? below(bytes) : bytes;
  }

  std::uint64_t any_size() {
    const std::uint64_t size = below(kPagesMax * kPageBytes);
    constexpr std::uint64_t kGrains[] = {1, kLineBytes, kPageBytes};
    return round_down(size, kGrains[below(std::size(kGrains))]);
  }

  std::uint64_t any_lines() {
    if (below(10) == 0) return kAllLines;
    std::uint64_t lines = 0;
    for (std::uint64_t runs = 1 + below(5); runs > 0; --runs) {
      const std::uint64_t first = below(64);
      const std::uint64_t count = below(2) == 0 ? 1 : 1 + below(64 - first);
      lines |= line_bits(first * kLineBytes, count * kLineBytes);
    }
    return lines;
  }

  // As Mapping commits: what is compared is the committed page, cut as the record will cut it.
  void look_at(std::uint64_t page, std::uint64_t lowest, const std::string& after_cut,
               std::vector<Change>& changes) {
    Change change{page, any_lines(), nullptr};
    const bool marks_are_enough =
        change.lines != kAllLines && (page + 1) * kPageBytes <= lowest && image_.only_in_base(page);
    if (!marks_are_enough) {
      auto committed = image_.page(page);
      ASSERT_TRUE(committed.ok());
      change.committed = std::move(committed.value());
      if (lowest < now_.size() && lowest < (page + 1) * kPageBytes) {
        change.committed = image_.copy(change.committed);
        const std::size_t kept = lowest > page * kPageBytes ? lowest - page * kPageBytes : 0;
        std::memset(change.committed->bytes.data() + kept, 0, kPageBytes - kept);
      }
      expect_page(change.committed, page, after_cut);
    }
    changes.push_back(std::move(change));
  }

  void commit() {
    Record record;
    record.sequence = next_sequence_;
    record.file_size = now_.size();
    std::string after = now_;
    std::uint64_t lowest = now_.size();
    if (below(7) == 0) {
      record.file_size = any_size();
      lowest = std::min({lowest, record.file_size, below(2) == 0 ? any_size() : lowest});
      if (lowest < now_.size()) record.truncate_to = lowest;
      after.resize(lowest);
      after.resize(record.file_size, '\0');
    }
    std::set<std::uint64_t> pages;
    for (std::uint64_t count = below(4); count > 0 && !after.empty(); --count)
      pages.insert(below(after.size()) / kPageBytes);
    std::vector<Change> changes;
    for (const std::uint64_t page : pages) look_at(page, lowest, after, changes);
    if (testing::Test::HasFatalFailure()) return;
    Status reserved;
    for (const Change& change : changes) {
      reserved = image_.reserve_space(change.page * kPageBytes, kPageBytes);
      if (!reserved.ok()) break;
    }
    // Or the log failed.
    if (!reserved.ok() || below(12) == 0) return image_.end_commit();

    if (record.truncate_to != journal::kNoTruncation)
      image_.truncate(record.truncate_to, record.sequence);
    image_.set_size(record.file_size, record.sequence);
    for (const Change& change : changes) patch(change, record, after);
    changes.clear();
    image_.end_commit();
    now_ = after;
    as_of_[next_sequence_++] = now_;
    records_.push_back(std::move(record));
    if (below(3) != 0) become_durable();
  }

  void patch(const Change& change, Record& record, std::string& after) {
    const std::uint64_t start = change.page * kPageBytes;
    const std::size_t valid = std::min<std::uint64_t>(kPageBytes, after.size() - start);
    const Status patched =
        for_lines(change.lines, valid, [&](std::size_t offset, std::size_t length) {
          const std::string text(length, static_cast<char>('b' + below(25)));
          image_.patch(change.page, change.committed, offset, std::as_bytes(std::span(text)),
                       record.sequence);
          after.replace(start + offset, length, text);
          record.ranges.emplace_back(start + offset, text);
          return Status{};
        });
    ASSERT_TRUE(patched.ok());
  }

  static void expect_page(const CommittedImage::Page& page, std::uint64_t number,
                          const std::string& file) {
    const std::uint64_t start = std::min<std::uint64_t>(number * kPageBytes, file.size());
    std::string expected = file.substr(start, kPageBytes);
    expected.resize(kPageBytes, '\0');
    ASSERT_EQ(std::memcmp(page->bytes.data(), expected.data(), kPageBytes), 0) << "page " << number;
  }

  void expect_now() {
    for (std::uint64_t number = 0; number <= kPagesMax; ++number) {
      auto page = image_.page(number);
      ASSERT_TRUE(page.ok());
      expect_page(page.value(), number, now_);
    }
  }

  // The journal may have let go of every record up to applied_sequence().
  void expect_a_crash_loses_nothing() {
    const std::uint64_t applied = image_.applied_sequence();
    ASSERT_LE(applied, durable_);
    std::string found = base_.bytes();
    for (const Record& record : records_)
      if (record.sequence > applied && record.sequence <= durable_) replay(record, found);
    ASSERT_TRUE(found == as_of_[durable_]) << "applied up to " << applied << " of " << durable_;
  }

  test::Random random_;
  const unsigned one_fails_of_;  // 0: none does
  std::string now_;              // of the last commit
  std::map<std::uint64_t, std::string> as_of_;
  std::vector<Record> records_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t durable_ = 0;
  StormyFile base_;
  CommittedImage image_;
};

TEST(CommittedImageStorm, LosesNothingWhateverArrivesWhileItIsApplied) {
  for (unsigned seed = 1; seed <= kSeeds && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Storm(seed, 0).pass();
  }
}

TEST(CommittedImageStorm, LosesNothingWhateverFailsWhileItIsApplied) {
  for (unsigned seed = 1; seed <= 3 * kSeeds && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Storm(seed, 12).pass();
  }
}

}  // namespace
}  // namespace pawl
