// Random sequences of calls against a model in memory, with crashes in between: after each, the
// file must hold exactly the last committed state.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "mapping/mapping.h"
#include "mapping/statistics.h"
#include "medium/open_medium.h"
#include "pawl/store.h"
#include "support/temporary_directory.h"
#include "support/test_size.h"
#include "track/tracker.h"

namespace pawl {
namespace {

struct Setting {
  TrackerChoice tracker;
  ApplyChoice apply;
  std::uint64_t journal_bytes;
  std::uint32_t threshold;
  std::uint64_t window_pages;
  const char* name;
  MediumKind medium = MediumKind::block;
};

class ModelTest : public testing::TestWithParam<Setting> {};

class Trial {
 public:
  Trial(const Setting& setting, unsigned seed)
      : setting_(setting),
        random_(seed),
        directory_(setting.medium == MediumKind::memory ? "/dev/shm" : nullptr),
        path_(directory_ / "file") {
    committed_ = content(random_() % (20 * kPageBytes));
    test::write_file(path_, committed_);
    now_ = committed_;
    open();
  }

  void steps(int count) {
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) step();
    close();
  }

 private:
  std::string content(std::size_t size) {
    std::string text(size, '\0');
    for (char& byte : text) byte = static_cast<char>(random_());
    return text;
  }
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void open() {
    Options options = Options::from_environment().value();
    options.tracker = setting_.tracker;
    options.apply = setting_.apply;
    options.journal_size_bytes = setting_.journal_bytes;
    options.apply_threshold_pages = setting_.threshold;
    if (below(3) == 0) options.resident_bytes_max = 8 * kPageBytes;
    auto medium = open_medium(path_, false, setting_.medium);
    ASSERT_TRUE(medium.ok()) << medium.status().text();
    auto mapping = Mapping::open(std::move(medium.value()), options);
    ASSERT_TRUE(mapping.ok()) << mapping.status().text();
    mapping_ = std::move(mapping.value());
    ASSERT_EQ(mapping_->size(), committed_.size());
    now_ = committed_;
    show();
  }

  void show() {
    const std::uint64_t offset = below(4) * kPageBytes;
    auto window = mapping_->map_window(nullptr, setting_.window_pages * kPageBytes,
                                       PROT_READ | PROT_WRITE, 0, offset);
    ASSERT_TRUE(window.ok()) << window.status().text();
    check();
  }

  void close() {
    if (testing::Test::HasFailure()) return;
    const Status closed = mapping_->close();
    ASSERT_TRUE(closed.ok()) << closed.text();
    mapping_.reset();
    ASSERT_TRUE(test::read_file(path_) == committed_) << "after a clean close";
    ASSERT_NE(::access((path_ + ".pawl").c_str(), F_OK), 0) << "a side file is left";
  }

  // The process dies: nothing is applied or closed any more.
  void crash() {
    mapping_.reset();
    open();
  }

  // What the program sees, through memory and through reads.
  void check() {
    ASSERT_EQ(mapping_->size(), now_.size());
    std::string seen(now_.size(), '?');
    auto got = mapping_->read(0, std::as_writable_bytes(std::span(seen)));
    ASSERT_TRUE(got.ok()) << got.status().text();
    ASSERT_EQ(got.value(), now_.size());
    ASSERT_TRUE(seen == now_) << "read() differs at "
                              << std::mismatch(seen.begin(), seen.end(), now_.begin()).first -
                                     seen.begin();
    const Window window = *mapping_->window();
    if (now_.size() > window.file_offset) {
      const std::size_t shown =
          std::min<std::size_t>(window.length, now_.size() - window.file_offset);
      ASSERT_EQ(std::memcmp(window.address, now_.data() + window.file_offset, shown), 0)
          << "the window differs";
    }
  }

  void store(std::uint64_t offset, const std::string& bytes) {
    const Window window = *mapping_->window();
    if (offset < window.file_offset || offset + bytes.size() > window.file_offset + window.length ||
        offset + bytes.size() > now_.size())
      return;
    std::memcpy(window.address + (offset - window.file_offset), bytes.data(), bytes.size());
    pawl_stored(window.address + (offset - window.file_offset), bytes.size());
    now_.replace(offset, bytes.size(), bytes);
  }

  // What msync of pages [first, end) makes of the committed state.
  std::string committed_after(std::uint64_t first, std::uint64_t end) const {
    const Window window = *mapping_->window();
    std::string after = committed_;
    if (lowest_ < after.size()) after.resize(lowest_);
    after.resize(now_.size(), '\0');
    for (std::uint64_t offset = 0; offset < now_.size(); offset += kPageBytes) {
      const std::uint64_t page = offset / kPageBytes;
      const bool in_window =
          offset >= window.file_offset && offset < window.file_offset + window.length;
      if (in_window && (page < first || page >= end)) continue;
      const std::size_t count = std::min<std::size_t>(kPageBytes, now_.size() - offset);
      after.replace(offset, count, now_, offset, count);
    }
    return after;
  }

  void step() {
    const Window window = *mapping_->window();
    const std::uint64_t window_first = window.file_offset / kPageBytes;
    const std::uint64_t window_pages = window.length / kPageBytes;
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        for (std::uint64_t i = 0, count = 1 + below(12); i < count; ++i)
          store(below(now_.size() + 1), content(1 + below(200)));
        break;
      case 4:
        store(below(now_.size() + 1), content(below(3 * kPageBytes)));
        break;
      case 5: {  // A-B-A
        const std::uint64_t offset = below(now_.size() + 1);
        const std::string before = now_.substr(offset, 100);
        store(offset, std::string(before.size(), 'B'));
        commit_all();
        store(offset, before);
        commit_all();
        break;
      }
      case 6:
      case 7:
        commit_all();
        break;
      case 8: {  // a range
        const std::uint64_t first = below(window_pages);
        const std::uint64_t count = 1 + below(window_pages - first);
        const std::string after =
            committed_after(window_first + first, window_first + first + count);
        const Status status =
            mapping_->commit(window.address + first * kPageBytes, count * kPageBytes);
        ASSERT_TRUE(status.ok()) << status.text();
        committed_ = after;
        lowest_ = now_.size();
        break;
      }
      case 9: {
        const Status status = mapping_->commit_async(window.address, window.length);
        ASSERT_TRUE(status.ok()) << status.text();
        committed_ = now_;
        lowest_ = now_.size();
        if (below(2) == 0) {
          ASSERT_TRUE(mapping_->wait().ok());
        }

        break;
      }
      case 10: {
        const Status status = mapping_->roll_back(window.address, window.length);
        ASSERT_TRUE(status.ok()) << status.text();
        now_ = committed_;
        lowest_ = now_.size();
        break;
      }
      case 11: {
        const std::uint64_t size =
            below(3) == 0 ? below(now_.size() + 1) : now_.size() + below(6 * kPageBytes);
        const Status status = mapping_->truncate(size);
        ASSERT_TRUE(status.ok()) << status.text();
        now_.resize(size, '\0');
        lowest_ = std::min<std::uint64_t>(lowest_, size);
        break;
      }
      case 12: {
        const std::uint64_t offset = below(now_.size() + 2 * kPageBytes);
        const std::string bytes = content(1 + below(2 * kPageBytes));
        const Status status = mapping_->write(offset, std::as_bytes(std::span(bytes)));
        ASSERT_TRUE(status.ok()) << status.text();
        if (now_.size() < offset + bytes.size()) now_.resize(offset + bytes.size(), '\0');
        now_.replace(offset, bytes.size(), bytes);
        break;
      }
      case 13:
        ASSERT_TRUE(mapping_->unmap_window(true).ok());
        show();
        break;
      case 14: {
        memory::LeftPlace left;
        auto moved = mapping_->remap_window((1 + below(2 * setting_.window_pages)) * kPageBytes,
                                            true, nullptr, left);
        ASSERT_TRUE(moved.ok()) << moved.status().text();
        break;
      }
      case 15:
        ASSERT_TRUE(mapping_->wait().ok());
        if (below(4) == 0) {
          close();
          open();
        } else {
          crash();
        }
        lowest_ = now_.size();
        break;
      default:
        break;
    }
    check();
  }

  void commit_all() {
    const Status status = mapping_->commit_all();
    ASSERT_TRUE(status.ok()) << status.text();
    committed_ = now_;
    lowest_ = now_.size();
  }

  const Setting setting_;
  std::mt19937 random_;
  test::TemporaryDirectory directory_;
  std::string path_;
  std::unique_ptr<Mapping> mapping_;
  std::string now_;        // as the program sees the file
  std::string committed_;  // as a crash leaves it
  std::uint64_t lowest_ = ~std::uint64_t{0};
};

TEST_P(ModelTest, HoldsTheCommittedStateWhateverTheCalls) {
  if (const TrackerSupport support = probe_trackers();
      GetParam().tracker == TrackerChoice::scan && !support.scan)
    GTEST_SKIP() << support.scan_reason;
  for (unsigned seed = 1; seed <= test::at_size(4U, 12U) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trial(GetParam(), seed).steps(150);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, ModelTest,
    testing::Values(
        Setting{TrackerChoice::scan, ApplyChoice::async, 16 << 20, 128, 16, "ScanAsync"},
        Setting{TrackerChoice::scan, ApplyChoice::eager, 64 << 10, 128, 16,
                "ScanEagerSmallJournal"},
        Setting{TrackerChoice::scan, ApplyChoice::async, 64 << 10, 2, 40, "ScanAsyncSmallJournal"},
        Setting{TrackerChoice::fault, ApplyChoice::async, 64 << 10, 8, 16,
                "FaultAsyncSmallJournal"},
        Setting{TrackerChoice::fault, ApplyChoice::eager, 1 << 20, 128, 40, "FaultEager"},
        Setting{TrackerChoice::store, ApplyChoice::async, 64 << 10, 8, 16,
                "StoreAsyncSmallJournal"},
        Setting{TrackerChoice::store, ApplyChoice::eager, 1 << 20, 128, 40, "StoreEager"},
        Setting{TrackerChoice::store, ApplyChoice::async, 64 << 10, 8, 16, "StoreMemory",
                MediumKind::memory},
        Setting{TrackerChoice::scan, ApplyChoice::async, 1 << 20, 8, 40, "ScanMemory",
                MediumKind::memory},
        Setting{TrackerChoice::fault, ApplyChoice::async, 64 << 10, 8, 16, "FaultMemory",
                MediumKind::memory}),
    [](const auto& parameters) { return parameters.param.name; });

}  // namespace
}  // namespace pawl
