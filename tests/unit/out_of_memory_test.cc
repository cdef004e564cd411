// Memory runs out somewhere in a call: for each allocation that the call makes, it is the one that
// fails, alone or with all after it.  The call may fail, but a later commit that succeeds makes
// durable what memory shows then.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "mapping/border.h"
#include "mapping/group.h"
#include "mapping/mapping.h"
#include "medium/block_medium.h"
#include "medium/quiet_thread.h"
#include "pawl/store.h"
#include "support/failing_allocations.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"
#include "support/test_size.h"

namespace pawl {
namespace {

constexpr long kNone = -1;
// Of the allocations of a call, so many of the first and of the last fail, each in its turn: those
// between are the same again for each page.  A sanitizer makes each of them dearer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kFirstSwept = 60;
constexpr long kLastSwept = 20;
#else
constexpr long kFirstSwept = test::at_size(50L, 200L);
constexpr long kLastSwept = test::at_size(10L, 40L);
#endif

// Marked, for the tracker that knows of nothing else.
void store(char* at, char value) {
  *at = value;
  pawl_stored(at, 1);
}

bool termination_is_blocked() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, SIGTERM) == 1;
}

struct Case {
  const char* name;
  TrackerChoice tracker;
  std::uint64_t pages;       // of the file and the window
  std::uint64_t page_step;   // between the pages that are stored to
  std::uint64_t pages_used;  // stored to
  ApplyChoice apply;
  // What is done with the stores, given the window.
  Status (*call)(Mapping& mapping, char* bytes, std::size_t length);
};

Status commit(Mapping& mapping, char* bytes, std::size_t length) {
  return mapping.commit(bytes, length);
}
Status commit_queued(Mapping& mapping, char* bytes, std::size_t length) {
  PAWL_TRY(mapping.commit_async(bytes, length));
  return mapping.wait();
}
Status commit_behind_queued(Mapping& mapping, char* bytes, std::size_t length) {
  // Another page: this commit may be there without the other.
  char* const last = bytes + length - kPageBytes;
  store(last, '!');
  PAWL_TRY(mapping.commit_async(last, kPageBytes));
  return mapping.commit(bytes, length);
}
Status roll_back_some(Mapping& mapping, char* bytes, std::size_t length) {
  return mapping.roll_back(bytes, length - kPageBytes);
}
Status roll_back_all(Mapping& mapping, char* bytes, std::size_t length) {
  return mapping.roll_back(bytes, length);
}
Status ask_for_changes(Mapping& mapping, char*, std::size_t) {
  EXPECT_TRUE(mapping.has_pending_changes());
  return {};
}

class OutOfMemory : public testing::TestWithParam<Case> {
 protected:
  struct Outcome {
    bool first_succeeded = false;
    bool second_succeeded = false;
    long allocations = 0;
  };

  Options options() const {
    Options chosen = test::options_for(GetParam().apply, GetParam().tracker);
    chosen.journal_size_bytes = kJournalSizeMin;
    return chosen;
  }
  std::size_t length() const { return GetParam().pages * kPageBytes; }
  std::vector<std::uint64_t> offsets() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < GetParam().pages_used; ++i)
      all.push_back(i * GetParam().page_step * kPageBytes);
    return all;
  }
  // The one that is stored to only before the second commit.
  std::uint64_t later_offset() const { return (GetParam().pages - 1) * kPageBytes; }

  void open() {
    auto opened = test::try_open(path_, options());
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    mapping_ = std::move(opened.value());
    auto window = mapping_->map_window(nullptr, length(), PROT_READ | PROT_WRITE, 0, 0);
    ASSERT_TRUE(window.ok()) << window.status().text();
    bytes_ = window.value();
  }

  Outcome store_call_and_commit(char value, long fails) {
    Outcome outcome;
    for (const std::uint64_t offset : offsets()) store(bytes_ + offset, value);
    allocations = 0;
    failing = fails;
    const Status first = at_border([&] { return GetParam().call(*mapping_, bytes_, length()); });
    failing = kNone;
    outcome.allocations = allocations;
    outcome.first_succeeded = first.ok();
    EXPECT_FALSE(termination_is_blocked());
    store(bytes_ + later_offset(), value);
    outcome.second_succeeded = mapping_->commit(bytes_, length()).ok();
    return outcome;
  }

  void sweep(bool stays_out) {
    test::write_file(path_, "a");
    std::filesystem::resize_file(path_, length());
    ASSERT_NO_FATAL_FAILURE(open());
    const long allocations_made = store_call_and_commit('0', kNone).allocations;
    mapping_.reset();
    all_after_fail = stays_out;
    int seconds = 0;
    for (long fails = 0; fails < allocations_made; ++fails) {
      if (fails == kFirstSwept) fails = std::max(fails, allocations_made - kLastSwept);
      SCOPED_TRACE("allocation " + std::to_string(fails) + " of " +
                   std::to_string(allocations_made));
      ASSERT_NO_FATAL_FAILURE(open());
      const std::string before = shown();
      const Outcome outcome = store_call_and_commit(static_cast<char>('1' + fails % 64), fails);
      const std::string after = shown();
      mapping_.reset();  // the process dies
      ASSERT_NO_FATAL_FAILURE(open());
      const std::string durable = shown();
      mapping_.reset();
      if (outcome.second_succeeded) {
        ++seconds;
        ASSERT_TRUE(durable == after) << "an acknowledged commit was lost";
        continue;
      }
      // All but what came after the call.
      const std::size_t count = GetParam().pages_used;
      const bool is_new = durable.compare(0, count, after, 0, count) == 0;
      const bool is_old = durable.compare(0, count, before, 0, count) == 0;
      ASSERT_TRUE(is_new || (is_old && !outcome.first_succeeded))
          << "an acknowledged commit was lost, or one that failed is there in part";
    }
    EXPECT_GT(seconds, 0);
  }

  std::string shown() const {
    std::string all;
    for (const std::uint64_t offset : offsets()) all += bytes_[offset];
    return all + bytes_[later_offset()];
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
  std::unique_ptr<Mapping> mapping_;
  char* bytes_ = nullptr;
};

TEST_P(OutOfMemory, ACommitThatSucceedsLaterHasAllThatMemoryShows) { sweep(false); }

TEST_P(OutOfMemory, NorIsAnyLostWhereMemoryStaysOut) { sweep(true); }

INSTANTIATE_TEST_SUITE_P(
    Calls, OutOfMemory,
    testing::Values(
        Case{"Staged", TrackerChoice::automatic, 16, 2, 4, ApplyChoice::async, commit},
        Case{"StagedFault", TrackerChoice::fault, 400, 2, 180, ApplyChoice::async, commit},
        Case{"Eager", TrackerChoice::automatic, 16, 2, 4, ApplyChoice::eager, commit},
        Case{"Located", TrackerChoice::automatic, 9000, 100, 80, ApplyChoice::async, commit},
        Case{"Queued", TrackerChoice::automatic, 16, 2, 4, ApplyChoice::async, commit_queued},
        Case{"BehindQueued", TrackerChoice::automatic, 16, 2, 4, ApplyChoice::async,
             commit_behind_queued},
        Case{"Direct", TrackerChoice::automatic, 2100, 1, 2090, ApplyChoice::async, commit},
        Case{"Some", TrackerChoice::automatic, 16, 2, 4, ApplyChoice::async, roll_back_some},
        Case{"All", TrackerChoice::automatic, 16, 2, 4, ApplyChoice::async, roll_back_all},
        Case{"StagedStore", TrackerChoice::store, 16, 2, 4, ApplyChoice::async, commit},
        Case{"EagerStore", TrackerChoice::store, 16, 2, 4, ApplyChoice::eager, commit},
        Case{"BehindQueuedStore", TrackerChoice::store, 16, 2, 4, ApplyChoice::async,
             commit_behind_queued},
        Case{"DirectStore", TrackerChoice::store, 2100, 1, 2090, ApplyChoice::async, commit},
        Case{"SomeStore", TrackerChoice::store, 16, 2, 4, ApplyChoice::async, roll_back_some},
        Case{"Asked", TrackerChoice::fault, 16, 2, 4, ApplyChoice::async, ask_for_changes}),
    [](const testing::TestParamInfo<Case>& of) { return std::string(of.param.name); });

// A call on the file fails for want of memory: the file is as before it or as after it, in memory
// too, and goes on.
struct FileCase {
  const char* name;
  std::uint64_t window_pages;
  // On `content` it does what is asked of the mapping.
  Status (*call)(Mapping& mapping, std::string& content);
};

constexpr std::uint64_t kFilePages = 12;

Status truncate_to(Mapping& mapping, std::string& content, std::size_t bytes) {
  PAWL_TRY(mapping.truncate(bytes));
  content.resize(bytes, '\0');
  return {};
}
Status write_at(Mapping& mapping, std::string& content, std::size_t at, std::size_t bytes) {
  static const std::vector<std::byte> written(8 * kPageBytes, std::byte{'w'});
  PAWL_TRY(mapping.write(at, std::span(written).first(bytes)));
  if (content.size() < at + bytes) content.resize(at + bytes, '\0');
  std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(at), bytes, 'w');
  return {};
}
Status show(Mapping& mapping, std::uint64_t pages) {
  return mapping.map_window(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE, 0, 0).status();
}

class OutOfMemoryFile : public testing::TestWithParam<std::tuple<TrackerChoice, FileCase>> {
 protected:
  // Some is committed; a commit of some pages has failed; and some more is stored and written.
  void open() {
    content_.assign(kFilePages * kPageBytes, '.');
    test::write_file(path_, content_);
    auto opened = test::try_open(path_, options());
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    mapping_ = std::move(opened.value());
    ASSERT_TRUE(show(*mapping_, of().window_pages).ok());
    mapping_->check_pages_with([](std::uint64_t, std::uint64_t) {
      return Status::failure(EBUSY, "pages that were taken are given back");
    });
    for (const std::uint64_t page : {1, 3, 5, 7}) store_to(page * kPageBytes + 8);
    ASSERT_FALSE(mapping_->commit_all().ok());
    mapping_->check_pages_with({});
    store_to(2 * kPageBytes);
    ASSERT_TRUE(write_at(*mapping_, content_, 9 * kPageBytes + 7, 20).ok());
  }
  void store_to(std::size_t at) {
    store(mapping_->window()->address + at, 's');
    content_[at] = 's';
  }
  static Options options() {
    Options chosen = test::options_for(ApplyChoice::async, std::get<0>(GetParam()));
    chosen.journal_size_bytes = kJournalSizeMin;
    return chosen;
  }
  static const FileCase& of() { return std::get<1>(GetParam()); }

  std::string read_all() const {
    std::string all(mapping_->size(), '?');
    auto count = mapping_->read(0, std::as_writable_bytes(std::span(all)));
    EXPECT_TRUE(count.ok() && count.value() == all.size());
    return all;
  }
  void sweep(bool stays_out) {
    all_after_fail = stays_out;
    bool has_failed = true;
    for (long fails = 0; has_failed; ++fails) {
      SCOPED_TRACE("allocation " + std::to_string(fails));
      ASSERT_NO_FATAL_FAILURE(open());
      std::string content_after = content_;
      content_after.reserve(2 * content_.size());  // the call itself takes no memory for it
      allocations = 0;
      failing = fails;
      const Status called = at_border([&] { return of().call(*mapping_, content_after); });
      failing = kNone;
      has_failed = allocations > fails;
      if (called.ok()) content_ = content_after;
      ASSERT_TRUE(called.ok() || called.error_number() == ENOMEM) << called.text();
      const std::string seen = read_all();
      const auto differs =
          std::mismatch(seen.begin(), seen.end(), content_.begin(), content_.end());
      ASSERT_TRUE(seen == content_)
          << (called.ok() ? "after" : "before") << ": " << seen.size() << " bytes and not "
          << content_.size() << ", another from " << differs.first - seen.begin();
      if (!mapping_->window()) {
        ASSERT_TRUE(show(*mapping_, of().window_pages).ok());
      }
      const std::size_t shown = std::min(mapping_->window()->length, content_.size());
      ASSERT_EQ(std::memcmp(mapping_->window()->address, content_.data(), shown), 0);
      store_to(4 * kPageBytes + 1);
      const Status committed = mapping_->commit_all();
      ASSERT_TRUE(committed.ok()) << committed.text();
      mapping_.reset();  // the process dies
      auto opened = test::try_open(path_, options());
      ASSERT_TRUE(opened.ok()) << opened.status().text();
      mapping_ = std::move(opened.value());
      ASSERT_TRUE(read_all() == content_) << "an acknowledged commit was lost";
      mapping_.reset();
    }
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
  std::unique_ptr<Mapping> mapping_;
  std::string content_;  // as the program should see it
};

// A write left an empty place among the pages outside of the window, and the next commit crashed; a
// cut took the pages, and the next commit made a state durable that never was; an append that
// failed left the file longer.
TEST_P(OutOfMemoryFile, ACallThatFailedLeftTheFileNeitherAsBeforeNorAsAfter) { sweep(false); }

TEST_P(OutOfMemoryFile, NorIsItBetweenWhereMemoryStaysOut) { sweep(true); }

INSTANTIATE_TEST_SUITE_P(
    Calls, OutOfMemoryFile,
    testing::Combine(
        testing::Values(TrackerChoice::automatic, TrackerChoice::fault, TrackerChoice::store),
        testing::Values(
            FileCase{"Cut", 16,
                     [](Mapping& mapping, std::string& content) {
                       return truncate_to(mapping, content, 5 * kPageBytes + 100);
                     }},
            FileCase{"CutOutside", 8,
                     [](Mapping& mapping, std::string& content) {
                       return truncate_to(mapping, content, 9 * kPageBytes + 10);
                     }},
            FileCase{"Growth", 16,
                     [](Mapping& mapping, std::string& content) {
                       return truncate_to(mapping, content, 14 * kPageBytes);
                     }},
            FileCase{"Write", 8,
                     [](Mapping& mapping, std::string& content) {
                       return write_at(mapping, content, 6 * kPageBytes + 5, 5 * kPageBytes);
                     }},
            FileCase{"Append", 8,
                     [](Mapping& mapping, std::string& content) {
                       return write_at(mapping, content, 13 * kPageBytes + 5, 3 * kPageBytes);
                     }},
            FileCase{"AppendToWindow", 14,
                     [](Mapping& mapping, std::string& content) {
                       return write_at(mapping, content, 11 * kPageBytes + 5, 5 * kPageBytes);
                     }},
            FileCase{"Unmap", 16,
                     [](Mapping& mapping, std::string&) { return mapping.unmap_window(true); }},
            FileCase{"Map", 16,
                     [](Mapping& mapping, std::string&) {
                       PAWL_TRY(mapping.unmap_window(true));
                       return show(mapping, 16);
                     }})),
    [](const testing::TestParamInfo<std::tuple<TrackerChoice, FileCase>>& of) {
      const TrackerChoice tracker = std::get<0>(of.param);
      const char* const with = tracker == TrackerChoice::fault   ? "Fault"
                               : tracker == TrackerChoice::store ? "Store"
                                                                 : "";
      return std::string(std::get<1>(of.param).name) + with;
    });

// A group that has one file, and which a second is to join.
class OutOfMemoryGroup : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4 * kPageBytes;

  struct Joined {
    std::unique_ptr<Mapping> mapping;
    char* bytes = nullptr;
  };
  Joined join(const std::string& path, long fails) {
    Joined joined;
    auto medium = open_block_medium(path, false);
    if (!medium.ok()) return joined;
    allocations = 0;
    failing = fails;
    const Status status = at_border([&]() -> Status {
      auto mapping = Group::join(group_, std::move(medium.value()));
      if (!mapping.ok()) return mapping.status();
      joined.mapping = std::move(mapping.value());
      return {};
    });
    failing = kNone;
    if (!status.ok()) return joined;
    auto window = joined.mapping->map_window(nullptr, kBytes, PROT_READ | PROT_WRITE, 0, 0);
    if (window.ok()) joined.bytes = window.value();
    return joined;
  }
  void open_group() {
    Options options = test::options_for(ApplyChoice::async);
    options.journal_size_bytes = kJournalSizeMin;
    auto group = Group::open(group_path_, options);
    ASSERT_TRUE(group.ok()) << group.status().text();
    group_ = std::move(group.value());
    first_ = join(first_path_, kNone);
    ASSERT_NE(first_.bytes, nullptr);
  }
  static Status recover_file(const std::string& path) {
    auto medium = open_block_medium(path, false);
    return medium.ok() ? recover(*medium.value()).status() : medium.status();
  }
  // Calls trial(fails) for each allocation of a join, the first and then all after it.
  template <class Trial>
  void for_each_allocation(const Trial& trial) {
    for (const auto& path : {first_path_, second_path_})
      test::write_file(path, std::string(kBytes, 'a'));
    long in_all = 1;
    for (const bool stays_out : {false, true}) {
      for (long fails = 0; fails <= in_all; ++fails) {
        SCOPED_TRACE("allocation " + std::to_string(fails) + (stays_out ? " and all after" : ""));
        ASSERT_NO_FATAL_FAILURE(open_group());
        all_after_fail = stays_out;
        Joined second = join(second_path_, fails);
        all_after_fail = false;
        if (fails < allocations) in_all = std::max(in_all, allocations);
        ASSERT_NO_FATAL_FAILURE(trial(std::move(second), static_cast<char>('A' + fails % 26)));
        ASSERT_EQ(group_, nullptr);
      }
    }
    EXPECT_GT(in_all, 10);
  }

  test::TemporaryDirectory directory_;
  std::string group_path_ = directory_ / "group";
  std::string first_path_ = directory_ / "first";
  std::string second_path_ = directory_ / "second";
  std::shared_ptr<Group> group_;
  Joined first_;
};

TEST_F(OutOfMemoryGroup, AFileThatCouldNotJoinJoinsLaterAndIsRecoveredWithTheOthers) {
  for_each_allocation([&](Joined second, char value) {
    if (second.mapping == nullptr) second = join(second_path_, kNone);
    ASSERT_NE(second.bytes, nullptr);
    std::memset(first_.bytes, value, kBytes);
    std::memset(second.bytes, value, kBytes);
    const Status committed = group_->commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
    // The process dies.
    first_.mapping.reset();
    second.mapping.reset();
    group_.reset();
    const Status recovered = recover_file(group_path_);
    ASSERT_TRUE(recovered.ok()) << recovered.text();
    for (const auto& path : {first_path_, second_path_})
      ASSERT_EQ(test::read_file(path), std::string(kBytes, value));
  });
}

TEST_F(OutOfMemoryGroup, AFileThatCouldNotJoinIsNotLostWhenTheGroupIsClosed) {
  for_each_allocation([&](Joined second, char value) {
    std::memset(first_.bytes, value, kBytes);
    const Status committed = group_->commit();
    ASSERT_TRUE(committed.ok()) << committed.text();
    if (second.mapping != nullptr) {
      ASSERT_TRUE(second.mapping->close().ok());
    }
    ASSERT_TRUE(first_.mapping->close().ok());
    first_.mapping.reset();
    second.mapping.reset();
    const Status closed = group_->close();
    ASSERT_TRUE(closed.ok()) << closed.text();
    group_.reset();
    const Status recovered = recover_file(second_path_);
    ASSERT_TRUE(recovered.ok()) << recovered.text();
    EXPECT_EQ(test::read_file(first_path_), std::string(kBytes, value));
  });
}

// The journal follows the mode of a file, which takes memory: where there was none for the second
// file, the pages of the first were forgotten, and the next commit was acknowledged without them.
TEST_F(OutOfMemoryGroup, ACommitThatFailedForgotThePagesOfTheFirstFile) {
  long in_all = 1;
  for (long fails = 0; fails <= in_all; ++fails) {
    SCOPED_TRACE("allocation " + std::to_string(fails));
    for (const auto& path : {first_path_, second_path_}) {
      test::write_file(path, std::string(kBytes, 'a'));
      ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    }
    ASSERT_NO_FATAL_FAILURE(open_group());
    Joined second = join(second_path_, kNone);
    ASSERT_NE(second.bytes, nullptr);
    std::memset(first_.bytes, 'b', kBytes);
    std::memset(second.bytes, 'b', kBytes);
    ASSERT_EQ(::chmod(second_path_.c_str(), 0640), 0);
    allocations = 0;
    failing = fails;
    [[maybe_unused]] const Status may_fail = at_border([&] { return group_->commit(); });
    failing = kNone;
    in_all = std::max(in_all, allocations);
    const bool is_committed = group_->commit().ok();
    // The process dies.
    first_.mapping.reset();
    second.mapping.reset();
    group_.reset();
    const Status recovered = recover_file(group_path_);
    ASSERT_TRUE(recovered.ok()) << recovered.text();
    if (!is_committed) continue;
    for (const auto& path : {first_path_, second_path_})
      ASSERT_EQ(test::read_file(path), std::string(kBytes, 'b'));
  }
  EXPECT_GT(in_all, 10);
}

// In the background nobody catches what is thrown: the program ended.
TEST(OutOfMemoryThreads, AFailureInTheBackgroundTookMemory) {
  const test::TemporaryDirectory directory;
  constexpr long kFailsMax = 12;
  for (const auto which : {test::Which::journal, test::Which::base}) {
    for (long fails = 0; fails < kFailsMax; ++fails) {
      const std::string path =
          directory / (std::to_string(fails) + (which == test::Which::base ? "b" : "j"));
      test::write_file(path, std::string(kPageBytes, 'a'));
      Options options = test::options_for(ApplyChoice::async);
      options.apply_threshold_pages = 0;
      auto watch = std::make_shared<test::Watch>();
      auto opened = test::try_open(path, options, watch);
      ASSERT_TRUE(opened.ok()) << opened.status().text();
      auto window = opened.value()->map_window(nullptr, kPageBytes, PROT_READ | PROT_WRITE, 0, 0);
      ASSERT_TRUE(window.ok()) << window.status().text();
      std::atomic<bool> has_failed{false};
      watch->judge_with([&, caller = ::pthread_self()](const test::Event& event) -> Status {
        if (event.which != which || event.act != test::Act::write ||
            ::pthread_equal(caller, ::pthread_self()) != 0)
          return {};
        Status made_up = Status::failure(EIO, "a text that is too long to take no memory");
        failing = allocations + fails;
        has_failed.store(true);
        return made_up;
      });
      store(window.value(), 'b');
      [[maybe_unused]] const Status queued =
          opened.value()->commit_async(window.value(), kPageBytes);
      while (!has_failed.load()) std::this_thread::yield();
      [[maybe_unused]] const Status waited = opened.value()->wait();
      opened.value().reset();  // ends the background
    }
  }
}

TEST(OutOfMemoryThreads, AThreadThatCannotStartLeftItsSignalsBlocked) {
  bool succeeded = false;
  for (long fails = 0; !succeeded; ++fails) {
    allocations = 0;
    failing = fails;
    {
      auto thread = start_quiet_thread("test", [] {});
      failing = kNone;
      EXPECT_FALSE(termination_is_blocked());
      succeeded = thread.ok();
      if (succeeded) thread.value().join();
      EXPECT_EQ(thread.status().error_number(), succeeded ? 0 : ENOMEM);
    }
  }
}

// Then a failure is one number, and has both.
TEST(OutOfMemory, KeepsErrorNumberAndCodeOfAFailureWithoutItsText) {
  allocations = 0;
  failing = 0;
  all_after_fail = true;
  const Status failure = Status::failure(EDQUOT, PAWL_ERROR_WAS_UNPROTECTED, {});
  failing = -1;
  EXPECT_GT(allocations, 0);
  EXPECT_EQ(failure.text(), "out of memory");
  for (const Status& one : {failure, Status(failure)}) {
    EXPECT_EQ(one.error_number(), EDQUOT);
    EXPECT_EQ(one.code(), PAWL_ERROR_WAS_UNPROTECTED);
  }
}

}  // namespace
}  // namespace pawl
