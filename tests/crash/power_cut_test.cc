// Random work on a disk that loses its power at random moments: in the middle of the work, of
// recovery, and of recovery after that.  Each time the file must be found as the last acknowledged
// commit left it, or as a later one did that was under way.

#include <sys/mman.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "crash/seeds.h"
#include "crash/simulated_disk.h"
#include "mapping/mapping.h"
#include "support/temporary_directory.h"
#include "workload/content.h"
#include "workload/file_model.h"

namespace pawl::test {
namespace {

constexpr unsigned kSeedsByDefault = 12;
constexpr unsigned kLargeEvery = 4;  // one seed in so many works on a large file
constexpr unsigned kDepthMax = 3;
constexpr std::uint64_t kSmallWindowPages = 48;
constexpr std::uint64_t kLargeWindowPages = 2400;  // more than a commit keeps in memory

// How much is done in a life, and how many power cuts it meets besides the one at its end; by how
// many lives came before it.  In the last one the file is only looked at.
struct Extent {
  unsigned steps;
  unsigned cuts;
};
constexpr std::array<Extent, kDepthMax + 1> kSmall = {{{100, 12}, {6, 3}, {3, 1}, {0, 0}}};
constexpr std::array<Extent, kDepthMax + 1> kLarge = {{{20, 6}, {6, 2}, {3, 1}, {0, 0}}};

// A power cut, and what may be found after it.
struct PowerCut {
  DiskState disk;
  std::vector<Content> acceptable;
};

// The commits of a program, in order.
class History {
 public:
  explicit History(std::vector<Content> states) : states_(std::move(states)) {}

  // A commit is under way, and may or may not be durable from here on.
  void begin(Content state) {
    const std::lock_guard lock(mutex_);
    states_.push_back(std::move(state));
  }
  // All that were begun are durable.
  void acknowledge() {
    const std::lock_guard lock(mutex_);
    acknowledged_ = states_.size() - 1;
  }
  // Recovery has chosen: from here on it is this one state.
  void settle(const Content& state) {
    const std::lock_guard lock(mutex_);
    states_ = {state};
    acknowledged_ = 0;
  }
  std::vector<Content> acceptable() const {
    const std::lock_guard lock(mutex_);
    return {states_.begin() + static_cast<std::ptrdiff_t>(acknowledged_), states_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Content> states_;
  std::size_t acknowledged_ = 0;
};

// Some of all moments, each as likely as the others.
class Cuts {
 public:
  Cuts(std::size_t count_max, unsigned seed) : count_max_(count_max), random_(seed) {}

  // Asked at each moment: the place of the cut to be made, if one is.
  PowerCut* next() {
    moments_ += 1;
    if (cuts_.size() < count_max_) return &cuts_.emplace_back();
    const std::uint64_t place = random_() % moments_;
    return place < count_max_ ? &cuts_[place] : nullptr;
  }
  void add(PowerCut cut) { cuts_.push_back(std::move(cut)); }
  std::vector<PowerCut>& all() { return cuts_; }

 private:
  const std::size_t count_max_;
  Random random_;
  std::uint64_t moments_ = 0;
  std::vector<PowerCut> cuts_;
};

// What stays the same from one life of the program to the next.
struct Plan {
  Options options;
  std::uint64_t window_pages;
  bool large;
};

Plan plan_for(unsigned seed) {
  Random random(seed);
  Plan plan{Options::from_environment().value(), kSmallWindowPages, seed % kLargeEvery == 0};
  if (plan.large) plan.window_pages = kLargeWindowPages;
  Options& options = plan.options;
  options.journal_size_bytes = kJournalSizeMin << (below(random, 2) * 2);
  options.apply_threshold_pages = below(random, 2) == 0 ? 2 : 128;
  options.apply = below(random, 3) == 0 ? ApplyChoice::eager : ApplyChoice::async;
  if (below(random, 4) == 0) options.tracker = TrackerChoice::fault;
  if (below(random, 3) == 0) options.resident_bytes_max = 8 * kPageBytes;
  return plan;
}

// The program from its start to the moment when the power fails, or to its end.
class Life {
 public:
  Life(const Plan& plan, const PowerCut& before, unsigned depth, unsigned seed)
      : plan_(plan),
        extent_(plan.large ? kLarge[depth] : kSmall[depth]),
        is_first_(depth == 0),
        is_last_(depth == kDepthMax),
        random_(seed),
        cuts_(extent_.cuts, seed),
        history_(before.acceptable),
        disk_(before.disk, directory_ / "file", seed),
        model_({}, plan.window_pages) {
    if (!is_last_) disk_.watch([this](const SimulatedDisk::Cut& cut) { moment(cut); });
    open();
  }

  // The power cuts of this life.
  std::vector<PowerCut> live() {
    for (unsigned i = 0; i < extent_.steps && !testing::Test::HasFailure(); ++i) step();
    if (!testing::Test::HasFailure() && below(random_, 2) == 0) close();
    disk_.watch({});
    if (!is_last_) cuts_.add({disk_.cut_now(), history_.acceptable()});
    mapping_.reset();
    return std::move(cuts_.all());
  }

 private:
  // What was acknowledged is asked first, and the cut made then: a commit that is acknowledged in
  // between was under way.
  void moment(const SimulatedDisk::Cut& cut) {
    PowerCut* const place = cuts_.next();
    if (place == nullptr) return;
    place->acceptable = history_.acceptable();
    place->disk = cut();
  }

  void open() {
    Options options = plan_.options;
    if (!is_first_ && below(random_, 2) == 0)
      options.journal_size_bytes = kJournalSizeMin << below(random_, 4);
    auto medium = disk_.open();
    ASSERT_TRUE(medium.ok()) << medium.status().text();
    auto mapping = Mapping::open(std::move(medium.value()), options);
    ASSERT_TRUE(mapping.ok()) << "the file is refused: " << mapping.status().text();
    mapping_ = std::move(mapping.value());
    ASSERT_NO_FATAL_FAILURE(recognise(content_found()));
    auto window = mapping_->map_window(nullptr, plan_.window_pages * kPageBytes,
                                       PROT_READ | PROT_WRITE, 0, 0);
    ASSERT_TRUE(window.ok()) << window.status().text();
    window_ = window.value();
    check();
  }

  Content content_found() {
    std::vector<std::byte> bytes(mapping_->size());
    auto got = mapping_->read(0, bytes);
    EXPECT_TRUE(got.ok() && got.value() == bytes.size()) << got.status().text();
    Content content;
    content.write(0, bytes);
    return content;
  }

  // A power cut during recovery must lead to the same state as recovery without it.
  void recognise(const Content& found) {
    std::string differences;
    for (const Content& acceptable : history_.acceptable()) {
      const auto differs = found.first_difference(acceptable);
      if (!differs.has_value()) {
        history_.settle(found);
        model_.restart(found);
        for (PowerCut& cut : cuts_.all()) cut.acceptable = {found};
        return;
      }
      differences += "\n  one of " + std::to_string(acceptable.size()) + " bytes, from byte " +
                     std::to_string(*differs) + " on";
    }
    FAIL() << "a file of " << found.size()
           << " bytes was found that is no commit's.  It differs from" << differences;
  }

  // -------------------------------------------------------------------------------------- work

  void step() {
    switch (below(random_, 16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        for (std::uint64_t i = 0, count = 1 + below(random_, 10); i < count; ++i) store_somewhere();
        break;
      case 4:
        store_in_many_pages();
        break;
      case 5:
      case 6:
        commit(all_pages(), false);
        break;
      case 7:
        commit(some_pages(), false);
        break;
      case 8:
        commit(all_pages(), true);
        break;
      case 9:
        commit(some_pages(), true);
        break;
      case 10:
      case 11:
        change_size();
        break;
      case 12:
        ASSERT_TRUE(mapping_->wait().ok());
        history_.acknowledge();
        break;
      case 13:
        roll_back();
        break;
      case 14:
        there_and_back();
        break;
      default:
        burst();
    }
    check();
  }

  PageRun all_pages() const { return {0, plan_.window_pages}; }
  PageRun some_pages() {
    const std::uint64_t first = below(random_, plan_.window_pages);
    return {first, 1 + below(random_, plan_.window_pages - first)};
  }

  void store(std::uint64_t offset, std::span<const std::byte> bytes) {
    ASSERT_LE(offset + bytes.size(), model_.size());
    if (bytes.empty()) return;
    std::memcpy(window_ + offset, bytes.data(), bytes.size());
    model_.write(offset, bytes);
  }

  void store_somewhere() {
    const std::uint64_t offset = below(random_, model_.size());
    const std::uint64_t count = 1 + below(random_, below(random_, 5) == 0 ? 9000 : 200);
    store(offset, random_bytes(random_, std::min(count, model_.size() - offset)));
  }

  // Enough for a record that is larger than a small journal; in a large file, for a commit that
  // goes past the overlay.
  void store_in_many_pages() {
    const std::size_t line_bytes = plan_.large ? 64 : kPageBytes;
    for (std::uint64_t start = 0; start < model_.size(); start += kPageBytes)
      store(start,
            random_bytes(random_, std::min<std::uint64_t>(line_bytes, model_.size() - start)));
  }

  void commit(const PageRun& pages, bool queue) {
    Content after = model_.after_commit(pages);
    history_.begin(after);
    char* const address = window_ + pages.first * kPageBytes;
    const std::size_t length = pages.count * kPageBytes;
    const Status status =
        queue ? mapping_->commit_async(address, length) : mapping_->commit(address, length);
    ASSERT_TRUE(status.ok()) << status.text();
    if (!queue) history_.acknowledge();
    model_.commit(std::move(after));
  }

  void change_size() {
    const std::uint64_t grown = model_.size() + below(random_, plan_.window_pages / 8 * kPageBytes);
    const std::uint64_t size = below(random_, 3) == 0
                                   ? below(random_, model_.size() + 1)
                                   : std::min(plan_.window_pages * kPageBytes, grown);
    ASSERT_TRUE(mapping_->truncate(size).ok());
    model_.truncate(size);
  }

  void roll_back() {
    const bool whole = below(random_, 2) == 0;
    const PageRun pages = whole ? all_pages() : some_pages();
    ASSERT_TRUE(
        mapping_->roll_back(window_ + pages.first * kPageBytes, pages.count * kPageBytes).ok());
    history_.acknowledge();  // it waits for what was queued
    if (pages.count == plan_.window_pages)
      model_.roll_back();
    else
      model_.roll_back(pages);
  }

  // From A to B and to A again, by two commits of which the base may have seen none.
  void there_and_back() {
    const std::uint64_t offset = below(random_, model_.size());
    std::vector<std::byte> before(std::min<std::uint64_t>(100, model_.size() - offset));
    model_.now().read(offset, before);
    commit(all_pages(), below(random_, 2) == 0);
    store(offset, random_bytes(random_, before.size()));
    commit(all_pages(), below(random_, 2) == 0);
    store(offset, before);
    commit(all_pages(), below(random_, 2) == 0);
  }

  // Commits on each other's heels, so that some are queued while others are applied.
  void burst() {
    for (std::uint64_t i = 0, count = 2 + below(random_, 6); i < count; ++i) {
      if (below(random_, 2) == 0)
        store_somewhere();
      else
        change_size();
      commit(all_pages(), below(random_, 2) == 0);
    }
  }

  void close() {
    const Status closed = mapping_->close();
    ASSERT_TRUE(closed.ok()) << closed.text();
    history_.acknowledge();
    ASSERT_EQ(Content::load_from(directory_ / "file").first_difference(model_.committed()),
              std::nullopt)
        << "after a clean close";
  }

  // The program sees its own stores.
  void check() {
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_EQ(mapping_->size(), model_.size());
    Content seen;
    seen.write(0, std::as_bytes(std::span(window_, model_.size())));
    ASSERT_EQ(seen.first_difference(model_.now()), std::nullopt) << "in memory";
  }

  const Plan& plan_;
  const Extent extent_;
  const bool is_first_;
  const bool is_last_;
  Random random_;
  Cuts cuts_;  // used under the disk's lock, and when nothing runs
  History history_;
  TemporaryDirectory directory_;
  SimulatedDisk disk_;
  FileModel model_;
  std::unique_ptr<Mapping> mapping_;
  char* window_ = nullptr;
};

// Lives on after a power cut, and after each of those that happen meanwhile.
void live_after(const Plan& plan, const PowerCut& before, unsigned depth, unsigned seed) {
  std::vector<PowerCut> cuts;
  {
    SCOPED_TRACE("life " + std::to_string(depth) + ", its seed " + std::to_string(seed));
    Life life(plan, before, depth, seed);
    if (!testing::Test::HasFailure()) cuts = life.live();
  }
  for (std::size_t i = 0; i < cuts.size() && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("cut " + std::to_string(i) + " of life " + std::to_string(depth));
    live_after(plan, cuts[i], depth + 1, seed * 16 + static_cast<unsigned>(i) + 1);
  }
}

TEST(PowerCut, LeavesTheLastAcknowledgedCommitOrALaterOne) {
  run_seeds(kSeedsByDefault, [](unsigned seed) {
    const Plan plan = plan_for(seed);
    Random random(seed);
    const std::uint64_t smallest = plan.large ? kLargeWindowPages - 200 : 0;
    const std::uint64_t pages = plan.large ? 200 : 20;
    Content initial;
    initial.write(0,
                  random_bytes(random, smallest * kPageBytes + below(random, pages * kPageBytes)));
    live_after(plan, {{{initial, {}}, {}}, {initial}}, 0, seed);
  });
}

}  // namespace
}  // namespace pawl::test
