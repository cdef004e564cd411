// Random work on a disk that is full at random moments.  A call that meets ENOSPC has changed
// nothing and may be made again; one that meets a final error, and a program that dies, leave the
// last commit.

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "crash/seeds.h"
#include "mapping/mapping.h"
#include "medium/block_medium.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"
#include "support/test_size.h"
#include "support/watched_medium.h"
#include "workload/content.h"
#include "workload/file_model.h"

namespace pawl::test {
namespace {

constexpr unsigned kSeedsByDefault = at_size(4U, 12U);
constexpr int kSteps = 120;
constexpr unsigned kRefusalEvery =
    25;  // while the disk is full, one operation in so many is refused
constexpr int kRetriesMax = 3;

struct Setting {
  const char* name;
  TrackerChoice tracker;
  ApplyChoice apply;
  std::uint64_t journal_bytes;
  std::uint32_t threshold_pages;
  std::uint64_t window_pages;
};

// Refuses, while it is full, some of the operations that may need space.
class FullDisk {
 public:
  explicit FullDisk(unsigned seed) : random_(seed) {}

  void set_full(bool full) {
    const std::lock_guard lock(mutex_);
    full_ = full;
  }
  Status judge(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (!full_ || event.act == Act::read || event.act == Act::flush) return {};
    if (random_() % kRefusalEvery != 0) return {};
    has_refused_ = true;
    return Status::failure(ENOSPC, "the disk is full");
  }

  bool has_refused() const {
    const std::lock_guard lock(mutex_);
    return has_refused_;
  }
  void forget_refusals() {
    const std::lock_guard lock(mutex_);
    has_refused_ = false;
  }

 private:
  mutable std::mutex mutex_;
  Random random_;
  bool full_ = false;
  bool has_refused_ = false;
};

class Trial {
 public:
  Trial(const Setting& setting, unsigned seed)
      : setting_(setting),
        random_(seed),
        disk_(std::make_shared<FullDisk>(seed)),
        path_(directory_ / "file"),
        model_(initial(), setting.window_pages) {
    model_.now().save_as(path_);
    open();
  }

  void run() {
    for (int i = 0; i < kSteps && !testing::Test::HasFailure(); ++i) step();
    if (testing::Test::HasFailure()) return;
    // Behind a new start there is no background that failed.
    if (!close()) close();
  }

 private:
  Content initial() {
    Content content;
    content.write(0, random_bytes(random_, below(random_, 20 * kPageBytes)));
    return content;
  }

  // ------------------------------------------------------------------------------ opening, dying

  void open() {
    disk_->forget_refusals();
    Options options = options_for(setting_.apply, setting_.tracker);
    options.journal_size_bytes = setting_.journal_bytes;
    options.apply_threshold_pages = setting_.threshold_pages;
    if (below(random_, 3) == 0) options.resident_bytes_max = 8 * kPageBytes;
    auto watch = std::make_shared<Watch>();
    watch->judge_with([disk = disk_](const Event& event) { return disk->judge(event); });
    auto mapping = try_open(path_, options, watch);
    ASSERT_TRUE(mapping.ok()) << mapping.status().text();
    mapping_ = std::move(mapping.value());
    show();
  }

  void show() {
    auto window = mapping_->map_window(nullptr, setting_.window_pages * kPageBytes,
                                       PROT_READ | PROT_WRITE, 0, 0);
    if (succeeded(window.status())) window_ = window.value();
  }

  // Of a call on a disk that has space.  It may come behind a final error of the background, which
  // met the full one: then the program has been started anew.
  bool succeeded(const Status& status) {
    if (status.ok()) return true;
    EXPECT_TRUE(status.error_number() == EIO && disk_->has_refused()) << status.text();
    if (!testing::Test::HasFailure()) die();
    return false;
  }

  // False when the program has been started anew instead.
  bool close() {
    if (!succeeded(mapping_->close())) return false;
    mapping_.reset();
    expect_just_the_file();
    model_.restart(model_.committed());
    return true;
  }
  void expect_just_the_file() {
    ASSERT_EQ(Content::load_from(path_).first_difference(model_.committed()), std::nullopt)
        << "after a clean close";
    ASSERT_NE(::access((path_ + kJournalSuffix).c_str(), F_OK), 0) << "a side file is left";
  }

  // The program dies, and is started again: one of two states is there.
  void die(const Content& one, const Content& other) {
    mapping_.reset();
    ASSERT_NO_FATAL_FAILURE(open());
    const Content found = content_found();
    ASSERT_TRUE(!found.first_difference(one).has_value() ||
                !found.first_difference(other).has_value())
        << "a file of " << found.size() << " bytes was found that is no commit's; it should have "
        << one.size() << " or " << other.size() << ", and differs from byte "
        << found.first_difference(one).value_or(0) << " or "
        << found.first_difference(other).value_or(0) << " on";
    model_.restart(found);
  }
  void die() {
    const Content last = model_.committed();
    die(last, last);
  }

  Content content_found() {
    std::vector<std::byte> bytes(mapping_->size());
    auto got = mapping_->read(0, bytes);
    EXPECT_TRUE(got.ok() && got.value() == bytes.size()) << got.status().text();
    Content content;
    content.write(0, bytes);
    return content;
  }

  // -------------------------------------------------------------------------------------- work

  void step() {
    switch (below(random_, 14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        for (std::uint64_t i = 0, count = 1 + below(random_, 12); i < count; ++i) store(200);
        break;
      case 4:
        store(3 * kPageBytes);
        break;
      case 5:
      case 6:
        commit(all_pages());
        break;
      case 7:
        commit(some_pages());
        break;
      case 8:
        commit_queued();
        break;
      case 9:
        roll_back();
        break;
      case 10:
        change_size();
        break;
      case 11:
        write_anywhere();
        break;
      case 12:
        if (succeeded(mapping_->unmap_window(true))) show();
        break;
      default:
        if (!succeeded(mapping_->wait())) break;
        if (below(random_, 4) == 0) {
          if (!close()) break;
          ASSERT_NO_FATAL_FAILURE(open());
        } else {
          ASSERT_NO_FATAL_FAILURE(die());
        }
    }
    check();
  }

  PageRun all_pages() const { return {0, setting_.window_pages}; }
  PageRun some_pages() {
    const std::uint64_t first = below(random_, setting_.window_pages);
    return {first, 1 + below(random_, setting_.window_pages - first)};
  }

  void store(std::uint64_t count_max) {
    const std::uint64_t shown = std::min(model_.size(), setting_.window_pages * kPageBytes);
    const std::uint64_t offset = below(random_, shown);
    const auto bytes =
        random_bytes(random_, std::min(1 + below(random_, count_max), shown - offset));
    if (bytes.empty()) return;
    std::memcpy(window_ + offset, bytes.data(), bytes.size());
    model_.write(offset, bytes);
  }

  // Outside the window, too.
  void write_anywhere() {
    const std::uint64_t offset = below(random_, model_.size() + 2 * kPageBytes);
    const auto bytes = random_bytes(random_, 1 + below(random_, 2 * kPageBytes));
    if (succeeded(mapping_->write(offset, bytes))) model_.write(offset, bytes);
  }

  void change_size() {
    const std::uint64_t size = below(random_, 3) == 0
                                   ? below(random_, model_.size() + 1)
                                   : model_.size() + below(random_, 6 * kPageBytes);
    if (succeeded(mapping_->truncate(size))) model_.truncate(size);
  }

  // Makes a call on the full disk, and, where that fails for want of space, again: sometimes until
  // there is space, sometimes not.  Tells whether it succeeded; after a final error the program has
  // been started anew.
  template <class Call>
  bool call_until_there_is_space(Call call) {
    for (int attempt = 0; attempt <= kRetriesMax; ++attempt) {
      disk_->set_full(attempt < kRetriesMax);
      const Status status = call();
      disk_->set_full(false);
      if (status.ok()) return true;
      if (status.error_number() != ENOSPC) {
        EXPECT_EQ(status.error_number(), EIO) << status.text();
        die();
        return false;
      }
      EXPECT_LT(attempt, kRetriesMax) << "there is space: " << status.text();
      check();
      if (below(random_, 2) == 0) return false;
    }
    return false;
  }

  char* address_of(const PageRun& pages) const { return window_ + pages.first * kPageBytes; }

  void commit(const PageRun& pages) {
    Content after = model_.after_commit(pages);
    if (call_until_there_is_space(
            [&] { return mapping_->commit(address_of(pages), pages.count * kPageBytes); }))
      model_.commit(std::move(after));
  }

  // Whether the batch is durable is known only when wait() succeeds.
  void commit_queued() {
    const PageRun pages = all_pages();
    Content after = model_.after_commit(pages);
    if (!call_until_there_is_space(
            [&] { return mapping_->commit_async(address_of(pages), pages.count * kPageBytes); }))
      return;
    disk_->set_full(true);
    const Status waited = mapping_->wait();
    disk_->set_full(false);
    if (waited.ok()) {
      model_.commit(std::move(after));
    } else {
      die(model_.committed(), after);
    }
  }

  void roll_back() {
    if (call_until_there_is_space(
            [&] { return mapping_->roll_back(window_, setting_.window_pages * kPageBytes); }))
      model_.roll_back();
  }

  // What the program sees, by reading and in memory.
  void check() {
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_EQ(mapping_->size(), model_.size());
    ASSERT_EQ(content_found().first_difference(model_.now()), std::nullopt) << "by reading";
    const std::uint64_t shown = std::min(model_.size(), setting_.window_pages * kPageBytes);
    std::vector<std::byte> wanted(shown);
    model_.now().read(0, wanted);
    ASSERT_TRUE(shown == 0 || std::memcmp(window_, wanted.data(), shown) == 0) << "in memory";
  }

  const Setting setting_;
  Random random_;
  const std::shared_ptr<FullDisk> disk_;
  TemporaryDirectory directory_;
  const std::string path_;
  FileModel model_;
  std::unique_ptr<Mapping> mapping_;
  char* window_ = nullptr;
};

class FullDiskTest : public testing::TestWithParam<Setting> {};

TEST_P(FullDiskTest, LosesNothing) {
  run_seeds(kSeedsByDefault, [](unsigned seed) { Trial(GetParam(), seed).run(); });
}

INSTANTIATE_TEST_SUITE_P(Settings, FullDiskTest,
                         testing::Values(Setting{"Async", TrackerChoice::automatic,
                                                 ApplyChoice::async, 16 << 20, 128, 16},
                                         Setting{"EagerSmallJournal", TrackerChoice::automatic,
                                                 ApplyChoice::eager, 64 << 10, 128, 16},
                                         Setting{"AsyncSmallJournal", TrackerChoice::automatic,
                                                 ApplyChoice::async, 64 << 10, 2, 40},
                                         Setting{"FaultAsyncSmallJournal", TrackerChoice::fault,
                                                 ApplyChoice::async, 64 << 10, 8, 16},
                                         Setting{"FaultEager", TrackerChoice::fault,
                                                 ApplyChoice::eager, 1 << 20, 128, 40}),
                         [](const auto& parameters) { return parameters.param.name; });

}  // namespace
}  // namespace pawl::test
