// What a program does to its process while files are mapped: children of every kind, cancelled
// threads, closed descriptors.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "mapping/open_mappings.h"
#include "medium/fork_guard.h"
#include "medium/law.h"
#include "medium/open_medium.h"
#include "medium/own_descriptors.h"
#include "medium/permissions.h"
#include "pawl/heap.h"
#include "pawl/pawl.h"
#include "pawl/store.h"
#include "support/locks_of_another.h"
#include "support/open_mapping.h"
#include "support/temporary_directory.h"
#include "support/test_size.h"
#include "support/userfault_descriptors.h"
#include "support/watched_medium.h"

namespace pawl {
namespace {

using test::read_file;
using test::TemporaryDirectory;
using test::write_file;

constexpr std::size_t kBytes = 16 * kPageBytes;
constexpr unsigned kSecondsMax = 60;  // of a child: ends one that hangs

class Process : public testing::Test {
 protected:
  void SetUp() override {
    write_file(path_, std::string(kBytes, 'a'));
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    bytes_ = static_cast<char*>(
        pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
    ASSERT_NE(bytes_, MAP_FAILED) << pawl_last_error();
  }
  void TearDown() override { ::close(descriptor_); }

  // What each call of a child did that was not refused as it should be.
  int calls_not_refused() const {
    int others = 0;
    const auto refused = [&](int result) { others += result != -1 || errno != EPERM ? 1 : 0; };
    refused(pawl_msync(bytes_, kBytes, MS_SYNC));
    refused(pawl_msync(bytes_, kBytes, MS_ASYNC));
    refused(pawl_msync(bytes_, kBytes, MS_INVALIDATE));
    refused(pawl_wait(bytes_));
    refused(pawl_ftruncate(descriptor_, 1));
    others += bytes_[1] == 'a' ? 0 : 1;  // it may read
    return others;
  }
  // In a child with a copy of the memory that goes, and nothing else; one that shares it is
  // refused.
  bool is_unmapped_as_it_must(bool is_copy) const {
    const int outcome = pawl_munmap(bytes_, kBytes);
    return is_copy ? outcome == 0 : outcome == -1 && errno == EPERM;
  }
  void expect_that_the_parent_goes_on() const {
    std::memset(bytes_, 'p', kBytes);
    EXPECT_EQ(pawl_msync(bytes_, kBytes, MS_SYNC), 0) << pawl_last_error();
    EXPECT_TRUE(std::filesystem::exists(path_ + ".pawl"));
    EXPECT_EQ(pawl_munmap(bytes_, kBytes), 0) << pawl_last_error();
    EXPECT_EQ(read_file(path_), std::string(kBytes, 'p'));
  }
  static int ended(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // As ended(), of one that may have blocked all signals.
  static int ended_in_time(pid_t child) {
    constexpr useconds_t kLookUs = 10'000;
    for (unsigned looks = 0; looks < kSecondsMax * (1'000'000 / kLookUs); ++looks) {
      siginfo_t info{};
      EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT), 0);
      if (info.si_pid == child) return ended(child);
      ::usleep(kLookUs);
    }
    ::kill(child, SIGKILL);
    return ended(child);
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
  int descriptor_ = -1;
  char* bytes_ = nullptr;
};

pid_t child_of_fork() { return ::fork(); }
pid_t child_of_clone() { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }
pid_t child_of_underscore_fork() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
  return ::_Fork();
#else
  return child_of_clone();
#endif
}

// A child that no handler prepared closed the parent's mapping: journal and mark were removed, and
// what the parent committed from then on was lost.
TEST_F(Process, AChildThatNoHandlerKnewClosedItsParentsMapping) {
  for (const auto make : {child_of_fork, child_of_clone, child_of_underscore_fork}) {
    const pid_t child = make();
    if (child == 0) {
      ::alarm(kSecondsMax);
      ::_exit(calls_not_refused() + (is_unmapped_as_it_must(true) ? 0 : 1));
    }
    EXPECT_EQ(ended(child), 0);
  }
  expect_that_the_parent_goes_on();
}

// A child that no handler knew, and that lives on, kept the writer's lock past the parent's close:
// the parent could not open its file again.
TEST_F(Process, AChildThatLivesOnKeptTheFileLocked) {
  for (const auto& make : {child_of_underscore_fork, child_of_clone}) {
    const pid_t child = make();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0) << pawl_last_error();
    bytes_ = static_cast<char*>(
        pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
    EXPECT_NE(bytes_, MAP_FAILED) << pawl_last_error();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (bytes_ == MAP_FAILED) return;
  }
  expect_that_the_parent_goes_on();
}

// Whom a user namespace shows was read from a stream, and libc links each stream into a list, under
// a lock that a thread of the parent held as the child came.
TEST_F(Process, AChildThatNoHandlerKnewWaitedForALockOfLibcs) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not fork";
#endif
  constexpr useconds_t kUntilItWaitsUs = 100'000;
  std::FILE* const stream = std::fopen((directory_ / "stream").c_str(), "w");
  ASSERT_NE(stream, nullptr);
  ::flockfile(stream);
  std::thread flushing([] { (void)std::fflush(nullptr); });  // holds the list, and waits
  ::usleep(kUntilItWaitsUs);
  const pid_t child = child_of_underscore_fork();
  if (child == 0) {
    constexpr uid_t kOverflow = 65534;
    ::alarm(kSecondsMax);
    is_shown_user(kOverflow);
    is_shown_group(kOverflow);
    ::_exit(0);
  }
  EXPECT_EQ(ended(child), 0);
  ::funlockfile(stream);
  flushing.join();
  (void)std::fclose(stream);
  expect_that_the_parent_goes_on();
}

// The child shares the parent's memory, and so each flag that it could be given.
TEST_F(Process, AChildThatSharesItsParentsMemoryIsRefused) {
  static std::function<int()> calls;
  calls = [this] { return calls_not_refused() + (is_unmapped_as_it_must(false) ? 0 : 1); };
  constexpr std::size_t kStackBytes = std::size_t{256} << 10;
  std::vector<char> stack(kStackBytes);
  for (const int kind : {CLONE_VM | CLONE_VFORK, CLONE_VM}) {
    const pid_t child =
        ::clone([](void*) { return calls(); }, stack.data() + kStackBytes, kind | SIGCHLD, nullptr);
    ASSERT_GT(child, 0);
    EXPECT_EQ(ended(child), 0);
  }
  expect_that_the_parent_goes_on();
}

// Whatever locks other threads of the parent hold: the child is refused, and does not wait.
TEST_F(Process, AChildThatNoHandlerKnewDoesNotWaitForThreadsOfItsParent) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not fork";
#endif
  std::atomic<bool> is_over{false};
  std::thread committing([&] {
    while (!is_over.load()) {
      bytes_[0] = static_cast<char>(bytes_[0] + 1);
      EXPECT_EQ(pawl_msync(bytes_, kBytes, MS_SYNC), 0);
    }
  });
  const std::string other = directory_ / "other";
  write_file(other, std::string(kBytes, 'o'));
  std::thread mapping([&] {
    while (!is_over.load()) {
      const int descriptor = ::open(other.c_str(), O_RDWR | O_CLOEXEC);
      void* const at =
          pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
      ::close(descriptor);
      if (at != MAP_FAILED) pawl_munmap(at, kBytes);
    }
  });
  constexpr int kChildren = 20;
  for (int i = 0; i < kChildren && !HasFailure(); ++i) {
    const pid_t child = child_of_clone();
    if (child == 0) {
      ::alarm(kSecondsMax);
      const bool is_refused = pawl_msync(bytes_, kBytes, MS_SYNC) == -1;
      ::_exit(is_refused ? 0 : 1);
    }
    EXPECT_EQ(ended(child), 0);
  }
  is_over.store(true);
  committing.join();
  mapping.join();
  EXPECT_EQ(pawl_munmap(bytes_, kBytes), 0) << pawl_last_error();
}

// What a child of a child does first: most of them exec.
int ended_after_fork() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  return ::waitpid(child, &status, 0) == child ? status : 1;
}

// Its handlers waited for a thread of the parent that took space for its commit.
TEST_F(Process, AForkInAChildThatNoHandlerKnewHungForACommitOfItsParent) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  std::filesystem::resize_file(path_, 0);
  std::filesystem::resize_file(path_, kBytes);
  int result = -1;
  const auto watch = std::make_shared<test::Watch>();
  const test::Opened opened(path_, test::options_for(ApplyChoice::async), watch);
  watch->judge_with([&](const test::Event& event) -> Status {
    if (event.which != test::Which::base || event.act != test::Act::reserve || result != -1)
      return {};
    const pid_t child = child_of_underscore_fork();
    if (child == 0) {
      ::alarm(kSecondsMax);
      ::_exit(ended_after_fork());
    }
    result = ended(child);
    return {};
  });
  opened.bytes()[0] = 'b';
  EXPECT_TRUE(opened.commit().ok());
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(opened->close().ok());
}

// Another thread of its parent held the lock of what pawl_stored() names: it hung for ever, with
// all signals blocked.
TEST_F(Process, AChildThatMappedAFileOfItsOwnHungForAThreadOfItsParent) {
  constexpr int kChildren = test::at_size(60, 200);
  std::atomic<bool> may_end{false};
  // So many that one of them has the lock at nearly every moment.
  std::array<std::thread, 4> storing;
  for (std::thread& thread : storing) {
    thread = std::thread([&] {
      while (!may_end) pawl_stored(bytes_, 64);
    });
  }
  const std::string own_path = directory_ / "own";
  write_file(own_path, std::string(kBytes, 'o'));
  for (int i = 0; i < kChildren && !HasFailure(); ++i) {
    const pid_t child = i % 2 == 0 ? child_of_fork() : child_of_underscore_fork();
    if (child == 0) {
      const int descriptor = ::open(own_path.c_str(), O_RDWR | O_CLOEXEC);
      void* const at =
          pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
      if (at == MAP_FAILED) ::_exit(1);
      ::_exit(pawl_munmap(at, kBytes) == 0 ? 0 : 2);
    }
    EXPECT_EQ(ended_in_time(child), 0) << i;
  }
  may_end = true;
  for (std::thread& thread : storing) thread.join();
  expect_that_the_parent_goes_on();
}

// A thread that unmaps changes what is to be done around a fork, at the moment the child is made.
TEST_F(Process, AForkInAChildHungForWhatItsParentWasAboutToChange) {
  int result = -1;
  {
    const std::shared_ptr<int> made_meanwhile(&result, [](int* outcome) {
      const pid_t child = child_of_underscore_fork();
      if (child == 0) {
        ::alarm(kSecondsMax);
        ::_exit(ended_after_fork());
      }
      *outcome = ended(child);
    });
    guard_fork(&result, {.before = [made_meanwhile] {}, .in_parent = [] {}, .in_child = [] {}});
  }
  forget_fork_guard(&result);
  EXPECT_EQ(result, 0);
  expect_that_the_parent_goes_on();
}

// Its device was asked of its name, which had gone: pawl_ftruncate() cut the file itself.
TEST_F(Process, AFileThatWasRenamedWhileItWasMappedIsFound) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  auto opened = test::try_open(path_, test::options_for(ApplyChoice::async));
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  const std::shared_ptr<Mapping> mapping = std::move(opened.value());
  auto at = mapping->map_window(nullptr, kBytes, PROT_READ | PROT_WRITE, 0, 0);
  ASSERT_TRUE(at.ok()) << at.status().text();
  std::filesystem::rename(path_, path_ + "2");
  ASSERT_TRUE(open_mappings::add(mapping, *mapping->window()).ok());
  struct stat file{};
  ASSERT_EQ(::fstat(descriptor_, &file), 0);
  EXPECT_EQ(open_mappings::find_file(file.st_dev, file.st_ino).mapping, mapping);
  EXPECT_EQ(open_mappings::remove(*mapping, at.value()), mapping);
  std::filesystem::rename(path_ + "2", path_);
  EXPECT_TRUE(mapping->close().ok());
}

// In memory, where the last commit goes into the base with the next one.
class ProcessWithMemory : public testing::Test {
 protected:
  void SetUp() override {
    write_file(path_, std::string(kBytes, 'a'));
    auto medium = open_medium(path_, false, MediumKind::memory);
    if (medium.status().error_number() == EOPNOTSUPP) GTEST_SKIP() << medium.status().text();
    ASSERT_TRUE(medium.ok()) << medium.status().text();
    auto opened = Mapping::open(std::move(medium.value()), test::options_for(ApplyChoice::async));
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    mapping_ = std::move(opened.value());
    ASSERT_TRUE(mapping_->map_window(nullptr, kPageBytes, PROT_READ | PROT_WRITE, 0, 0).ok());
    ASSERT_EQ(::pipe(go_on_.data()), 0);
  }
  void TearDown() override {
    for (const int end : go_on_) ::close(end);
  }

  // Outside of the window.
  void commit(std::uint64_t offset, char content) const {
    ASSERT_TRUE(mapping_->write(offset, std::as_bytes(std::span(&content, 1))).ok());
    const Status committed = mapping_->commit_all();
    ASSERT_TRUE(committed.ok()) << committed.text();
  }
  char read_at(std::uint64_t offset) const {
    char content = 0;
    const auto got = mapping_->read(offset, std::as_writable_bytes(std::span(&content, 1)));
    return got.ok() ? content : '?';
  }
  // That was made after the commit of a byte, and does something when the parent has committed the
  // next ones.
  void expect_that_it_changes_nothing(const std::function<bool()>& what_the_child_does) const {
    constexpr std::uint64_t kOffset = 2 * kPageBytes;
    commit(kOffset, 'A');
    const pid_t child = child_of_underscore_fork();
    if (child == 0) {
      ::alarm(kSecondsMax);
      char byte = 0;
      const bool is_told = ::read(go_on_[0], &byte, 1) == 1;
      ::_exit(is_told && what_the_child_does() ? 0 : 1);
    }
    commit(kOffset, 'B');
    for (const char other : {'1', '2', '3'}) commit(3 * kPageBytes, other);
    ASSERT_EQ(::write(go_on_[1], "x", 1), 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(read_at(kOffset), 'B');
    EXPECT_TRUE(mapping_->close().ok());
    EXPECT_EQ(read_file(path_)[kOffset], 'B');
  }

  TemporaryDirectory directory_{::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : nullptr};
  std::string path_ = directory_ / "file";
  std::unique_ptr<Mapping> mapping_;
  std::array<int, 2> go_on_{-1, -1};
};

// The child's copy of the last commit was put into the file around its fork.
TEST_F(ProcessWithMemory, AChildThatForkedPutAnOldCommitOverANewerOne) {
  expect_that_it_changes_nothing([] { return ended_after_fork() == 0; });
}

TEST_F(ProcessWithMemory, AChildThatReadPutAnOldCommitOverANewerOne) {
  expect_that_it_changes_nothing([this] { return read_at(2 * kPageBytes) == 'A'; });
}

TEST_F(ProcessWithMemory, AChildThatSharesItsParentsMemoryReadsWhatIsCommitted) {
  commit(2 * kPageBytes, 'A');
  static std::function<bool()> reads;
  reads = [this] { return read_at(2 * kPageBytes) == 'A'; };
  constexpr std::size_t kStackBytes = std::size_t{256} << 10;
  std::vector<char> stack(kStackBytes);
  const pid_t child = ::clone([](void*) { return reads() ? 0 : 1; }, stack.data() + kStackBytes,
                              CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(mapping_->close().ok());
}

TEST_F(ProcessWithMemory, AForkInAChildHungForACommitOfItsParent) {
  int status = -1;
  mapping_->check_pages_with([&](std::uint64_t, std::uint64_t) -> Status {
    const pid_t child = child_of_underscore_fork();
    if (child == 0) {
      ::alarm(kSecondsMax);
      ::_exit(ended_after_fork());
    }
    ::waitpid(child, &status, 0);
    return {};
  });
  mapping_->window()->address[0] = 'c';
  ASSERT_TRUE(mapping_->commit_all().ok());
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(mapping_->close().ok());
}

// Forced unwinding met a function that lets no exception pass, and the program was ended.
TEST_F(Process, ACancelledThreadEndedTheProgram) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer takes what a cancelled thread leaves for an overflow";
#endif
  // Deferred: where it is asynchronous, glibc 2.36 cancels in system calls of a thread that has
  // switched cancellation off meanwhile.
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    struct Work {
      char* bytes;
      int commits = 0;
    } work{bytes_};
    pthread_t thread{};
    ASSERT_EQ(::pthread_create(
                  &thread, nullptr,
                  [](void* argument) -> void* {
                    auto& own = *static_cast<Work*>(argument);
                    for (;;) {
                      own.bytes[0] = static_cast<char>(own.bytes[0] + 1);
                      if (pawl_msync(own.bytes, kBytes, MS_SYNC) != 0) return argument;
                      __atomic_fetch_add(&own.commits, 1, __ATOMIC_SEQ_CST);
                    }
                  },
                  &work),
              0);
    while (__atomic_load_n(&work.commits, __ATOMIC_SEQ_CST) < 1 + round % 4)
      std::this_thread::yield();
    ASSERT_EQ(::pthread_cancel(thread), 0);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    bytes_[1] = static_cast<char>('A' + round);
    ASSERT_EQ(pawl_msync(bytes_, kBytes, MS_SYNC), 0) << pawl_last_error();
  }
  expect_that_the_parent_goes_on();
}

// A thread that waits in a wrapped call goes at once, and leaves no page held open.
TEST_F(Process, AThreadThatWaitsInReadCanBeCancelled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  struct Work {
    int from;
    char* into;
  } work{ends[0], bytes_};
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  const auto& own = *static_cast<Work*>(argument);
                  [[maybe_unused]] const ssize_t none = ::read(own.from, own.into, kPageBytes);
                  return argument;
                },
                &work),
            0);
  ASSERT_EQ(::pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  ::close(ends[0]);
  ::close(ends[1]);
  expect_that_the_parent_goes_on();
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) count += 1;
  ::closedir(directory);
  return count;
}

using NamedCalls = std::vector<std::pair<std::string, std::function<bool()>>>;

// Once each, for what stays from the first call on; then some times more.
void expect_no_descriptor_left_by(const NamedCalls& calls) {
  for (const auto& [name, call] : calls) EXPECT_TRUE(call()) << name << ": " << pawl_last_error();
  constexpr int kTimes = 3;
  for (const auto& [name, call] : calls) {
    const std::size_t before = open_descriptors();
    for (int i = 0; i < kTimes; ++i) EXPECT_TRUE(call()) << name << ": " << pawl_last_error();
    EXPECT_EQ(open_descriptors(), before) << name;
  }
}

NamedCalls recovery_and_copies(const std::string& path, const std::string& copy) {
  return {
      {"recover", [=] { return pawl_recover(path.c_str()) == 0; }},
      {"snapshot",
       [=] { return pawl_snapshot(path.c_str(), copy.c_str(), PAWL_SNAPSHOT_REPLACE) == 0; }},
      {"snapshot again", [=] { return pawl_snapshot(path.c_str(), copy.c_str(), 0) == -1; }},
  };
}

// Runs in a process of its own, whose descriptors may all be closed; 0 when `work` answers true.
int alone(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsMax);
    ::_exit(work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The program's next files got the numbers of the journal, the file and its lock: what was
// committed was written over them.
TEST_F(Process, ClosedDescriptorsLetAJournalBeWrittenIntoTheProgramsFiles) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  enum class How { one_by_one, by_dup2 };
  for (const How how : {How::one_by_one, How::by_dup2}) {
    EXPECT_EQ(alone([&] {
                const int descriptor = ::open(path_.c_str(), O_RDWR);
                void* const at =
                    pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
                if (at == MAP_FAILED) return false;
                constexpr int kOwnFiles = 24;
                constexpr int kFirst = 3;
                const std::string own = directory_ / "own";
                write_file(own, "");
                for (int number = kFirst; number < kFirst + kOwnFiles; ++number) {
                  if (how == How::one_by_one) {
                    ::close(number);
                  } else {
                    const int opened = ::open(own.c_str(), O_RDWR | O_CREAT, 0600);
                    ::dup2(opened, number);
                  }
                }
                for (int i = 0; i < kOwnFiles; ++i) ::open(own.c_str(), O_RDWR);
                std::memset(at, 'b', kBytes);
                const int committed = pawl_msync(at, kBytes, MS_SYNC);
                const bool is_reported = committed == -1 && errno == EIO &&
                                         std::strstr(pawl_last_error(), "closed") != nullptr;
                const bool stays = pawl_msync(at, kBytes, MS_SYNC) == -1;
                [[maybe_unused]] const int closed = pawl_munmap(at, kBytes);
                return is_reported && stays && read_file(own).empty();
              }),
              0);
    EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
    EXPECT_TRUE(read_file(path_) == std::string(kBytes, 'a'));
  }
}

// Commits went on without what was stored since.
TEST_F(Process, AClosedUserfaultDescriptorEndsTheCommits) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  EXPECT_EQ(alone([&] {
              const int descriptor = ::open(path_.c_str(), O_RDWR);
              void* const at =
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
              if (at == MAP_FAILED) return false;
              if (test::close_userfault_descriptors() == 0) return true;  // another tracker
              std::memset(at, 'b', kBytes);
              const bool is_reported = pawl_msync(at, kBytes, MS_SYNC) == -1 && errno == EIO &&
                                       std::strstr(pawl_last_error(), "userfaultfd") != nullptr;
              const bool stays = pawl_msync(at, kBytes, MS_SYNC) == -1 &&
                                 std::strstr(pawl_last_error(), "no more commits") != nullptr;
              return is_reported && stays;
            }),
            0);
  EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
  EXPECT_TRUE(read_file(path_) == std::string(kBytes, 'a'));
}

// A daemon has closed 0, 1 and 2: what it printed got into the file, which had such a number.
TEST_F(Process, WhatIsPrintedGotIntoTheFile) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  const std::string copy = directory_ / "copy";
  EXPECT_EQ(alone([&] {
              for (const int number : {0, 1, 2}) ::close(number);
              struct flock lock = {
                  .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
              if (::fcntl(descriptor_, F_SETLK, &lock) != 0) return false;
              void* const at =
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0);
              if (at == MAP_FAILED) return false;
              for (const int number : {0, 1, 2}) {
                struct stat status{};
                if (::fstat(number, &status) == 0 && S_ISREG(status.st_mode) &&
                    status.st_size == static_cast<off_t>(kBytes))
                  return false;
              }
              // Nor are the program's locks dropped for that.
              const pid_t child = ::fork();
              if (child == 0) ::_exit(::fcntl(descriptor_, F_SETLK, &lock) == 0 ? 1 : 0);
              return ended(child) == 0 && pawl_munmap(at, kBytes) == 0;
            }),
            0);
}

// The writer's lock, and its notice.
void close_what_holds_locks() {
  constexpr int kNumbersMax = 64;
  for (int number = 0; number < kNumbersMax; ++number) {
    const std::string facts = read_file("/proc/self/fdinfo/" + std::to_string(number));
    if (facts.find("OFDLCK") != std::string::npos) ::close(number);
  }
}

// The descriptor that holds the writer's lock was not looked at: with it closed there were two
// writers, and both commits were acknowledged.
TEST_F(Process, AClosedLockLeftTwoWriters) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  EXPECT_EQ(alone([&] {
              char* const at = static_cast<char*>(
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
              if (at == MAP_FAILED) return false;
              close_what_holds_locks();
              if (alone([&] {
                    const test::Opened second(path_, test::options_for(ApplyChoice::async));
                    second.bytes()[0] = 'b';
                    return second.commit().ok() && second->close().ok();
                  }) != 0)
                return false;
              std::memset(at, 'c', kBytes);
              const bool is_refused = pawl_msync(at, kBytes, MS_SYNC) == -1 && errno == EIO;
              return pawl_munmap(at, kBytes) == -1 && is_refused;
            }),
            0);
  EXPECT_EQ(read_file(path_), "b" + std::string(kBytes - 1, 'a'));
}

// The notice has a descriptor of its own: with it closed, and where files have no attributes,
// another name of the file let a second writer in, and both commits were acknowledged.
TEST_F(Process, AClosedNoticeLeftTwoWriters) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  EXPECT_EQ(alone([&] {
              char* const at = static_cast<char*>(
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
              if (at == MAP_FAILED) return false;
              int closed = 0;
              for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
                std::error_code ignored;
                const std::string target = std::filesystem::read_symlink(entry, ignored).string();
                if (!target.starts_with("time:") && !target.starts_with("user:")) continue;
                ::close(std::stoi(entry.path().filename().string()));
                ++closed;
              }
              at[0] = 'c';
              return closed == 1 && pawl_msync(at, kBytes, MS_SYNC) == -1 && errno == EIO;
            }),
            0);
}

// A thread's own descriptors: what the main thread has open under the number of the journal was
// written over as a journal, and named as the file's.
TEST_F(Process, AThreadWithItsOwnDescriptorsDestroyedAnotherFile) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  const std::string other = directory_ / "other";
  write_file(other, "other");
  EXPECT_EQ(alone([&] {
              bool is_committed = false;
              std::atomic<bool> is_apart = false;
              std::atomic<bool> are_open = false;
              std::thread thread([&] {
                if (::unshare(CLONE_FILES) != 0) return;
                is_apart = true;
                while (!are_open) ::usleep(100);
                char* const at = static_cast<char*>(
                    pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
                if (at == MAP_FAILED) return;
                at[0] = 'T';
                is_committed = pawl_msync(at, kBytes, MS_SYNC) == 0 && pawl_munmap(at, kBytes) == 0;
              });
              while (!is_apart) ::usleep(100);
              constexpr int kOpened = 32;  // under the numbers that Pawl gets in that thread
              for (int i = 0; i < kOpened; ++i) ::open(other.c_str(), O_RDWR | O_CLOEXEC);
              are_open = true;
              thread.join();
              return is_committed && read_file(other) == "other";
            }),
            0);
  EXPECT_EQ(read_file(path_), "T" + std::string(kBytes - 1, 'a'));
}

// Pawl closed numbers that were not its own any more, but the program's.
TEST_F(Process, DescriptorsOfTheProgramWereClosed) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  EXPECT_EQ(alone([&] {
              void* const at =
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0);
              if (at == MAP_FAILED) return false;
              const std::string own = directory_ / "own";
              struct stat folder{};
              ::stat(directory_.path().c_str(), &folder);
              std::vector<int> numbers;
              constexpr int kNumbersMax = 64;
              for (int number = 3; number < kNumbersMax; ++number) {
                // Of files: what the kernel made for a tracker is not at stake.
                struct stat status{};
                if (::fstat(number, &status) != 0 || number == descriptor_ ||
                    (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) ||
                    status.st_dev != folder.st_dev)
                  continue;
                const int opened = ::open(own.c_str(), O_RDWR | O_CREAT, 0600);
                ::dup2(opened, number);
                if (opened != number) ::close(opened);
                numbers.push_back(number);
              }
              [[maybe_unused]] const int closed = pawl_munmap(at, kBytes);
              return numbers.size() >= 3 &&
                     std::all_of(numbers.begin(), numbers.end(),
                                 [](int number) { return ::fcntl(number, F_GETFD) >= 0; });
            }),
            0);
  EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
}

// Of a mapping so large that the tracker has descriptors of all kinds, a copy of `own` gets the
// number of each.
std::vector<int> take_numbers_of_tracker(int own) {
  std::vector<int> taken;
  for (const int number : own_descriptors::between(0, ~0U)) {
    struct stat status{};
    if (::fstat(number, &status) != 0) continue;
    std::error_code ignored;
    const std::string target =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(number), ignored).string();
    if (!target.starts_with("anon_inode:") && !target.ends_with("/pagemap")) continue;
    ::dup2(own, number);
    taken.push_back(number);
  }
  return taken;
}

// The numbers of a userfaultfd, of the pagemap and of perf events were closed without a look.  An
// eventfd has the inode of some of them.
TEST_F(Process, WhatTheProgramOpenedUnderNumbersOfATrackerWasClosed) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  constexpr std::size_t kLargeBytes = std::size_t{128} << 20;
  ASSERT_EQ(::ftruncate(descriptor_, kLargeBytes), 0);
  for (const bool is_event : {false, true}) {
    EXPECT_EQ(alone([&] {
                char* const at = static_cast<char*>(pawl_mmap(
                    nullptr, kLargeBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
                if (at == MAP_FAILED) return false;
                const int own = is_event
                                    ? ::eventfd(0, EFD_CLOEXEC)
                                    : ::open((directory_ / "own").c_str(), O_RDWR | O_CREAT, 0600);
                const std::vector<int> numbers = take_numbers_of_tracker(own);
                if (numbers.empty()) return true;  // another tracker
                at[0] = 'b';
                const bool is_refused = pawl_msync(at, kPageBytes, MS_SYNC) == -1 && errno == EIO &&
                                        pawl_last_error_code() == PAWL_ERROR_STORES_UNSEEN &&
                                        std::strstr(pawl_last_error(), "no longer recorded");
                [[maybe_unused]] const int closed = pawl_munmap(at, kLargeBytes);
                return is_refused && std::all_of(numbers.begin(), numbers.end(), [](int number) {
                         return ::fcntl(number, F_GETFD) >= 0;
                       });
              }),
              0)
        << is_event;
    EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
  }
}

// A daemon's log, which then gets 0, 1 and 2, ended what had these numbers.
TEST_F(Process, ATrackerTookTheNumbersOfStandardStreams) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  EXPECT_EQ(alone([&] {
              for (const int number : {0, 1, 2}) ::close(number);
              if (pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0) ==
                  MAP_FAILED)
                return false;
              return ::fcntl(0, F_GETFD) == -1 && ::fcntl(1, F_GETFD) == -1 &&
                     ::fcntl(2, F_GETFD) == -1;
            }),
            0);
  EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
}

// A copy of `own` gets the number by which Pawl has the file of `mapped` open.
bool take_number_of_base(int mapped, int own) {
  struct stat file{};
  ::fstat(mapped, &file);
  bool is_taken = false;
  for (const int number : own_descriptors::between(0, ~0U)) {
    struct stat status{};
    if (::fstat(number, &status) == 0 && status.st_ino == file.st_ino &&
        status.st_dev == file.st_dev)
      is_taken = ::dup2(own, number) == number;
  }
  return is_taken;
}

// Its bytes were shown in the mapping, with the answer 0, and its position was moved.
TEST_F(Process, AFileOfTheProgramsUnderTheNumberOfTheMappedOneWasUsed) {
  constexpr off_t kPosition = 10;
  const std::string own_path = directory_ / "own";
  write_file(own_path, std::string(kBytes, 'S'));
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  const auto refused = [](int result) { return result == -1 && errno == EIO; };
  const std::vector<std::function<bool(char*)>> calls{
      [&](char* at) { return refused(pawl_msync(at, kBytes, MS_INVALIDATE)); },
      [&](char* at) { return refused(pawl_msync(at, kPageBytes, MS_INVALIDATE)); },
      [&](char*) { return refused(pawl_ftruncate(descriptor_, kBytes + 1)); },
      [&](char*) { return refused(pawl_ftruncate(descriptor_, kBytes - 1)); },
#ifndef PAWL_SANITIZED  // there mremap() is the kernel's alone
      [&](char* at) {
        return ::mremap(at, kBytes, 2 * kBytes, MREMAP_MAYMOVE) == MAP_FAILED && errno == EIO;
      },
#endif
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(alone([&] {
                char* const at = static_cast<char*>(
                    pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
                if (at == MAP_FAILED) return false;
                const int own = ::open(own_path.c_str(), O_RDWR);
                ::lseek(own, kPosition, SEEK_SET);
                if (!take_number_of_base(descriptor_, own)) return false;
                at[0] = 'n';
                if (!calls[i](at)) return false;
                return at[0] != 'S' && at[kPageBytes] == 'a' &&
                       ::lseek(own, 0, SEEK_CUR) == kPosition &&
                       read_file(own_path) == std::string(kBytes, 'S');
              }),
              0)
        << i;
    EXPECT_EQ(pawl_recover(path_.c_str()), 0) << pawl_last_error();
  }
}

// To open them by their names closed a descriptor of theirs.
TEST_F(Process, OpeningAHeapOrAGroupDroppedTheProgramsLocks) {
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
  const auto is_locked = [&](int descriptor) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::fcntl(descriptor, F_SETLK, &lock) == 0 ? 1 : 0);
    return ended(child) == 0;
  };
  const std::string heap_path = directory_ / "heap";
  const std::string group_path = directory_ / "group";
  const int of_heap = ::open(heap_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int of_group = ::open(group_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::fcntl(of_heap, F_SETLK, &lock), 0);
  ASSERT_EQ(::fcntl(of_group, F_SETLK, &lock), 0);
  pawl_heap* const heap = pawl_heap_open(heap_path.c_str(), nullptr);
  ASSERT_NE(heap, nullptr) << pawl_last_error();
  EXPECT_TRUE(is_locked(of_heap));
  EXPECT_EQ(pawl_heap_close(heap), 0) << pawl_last_error();
  EXPECT_TRUE(is_locked(of_heap));
  pawl_group* const group = pawl_group_open(group_path.c_str(), nullptr);
  ASSERT_NE(group, nullptr) << pawl_last_error();
  EXPECT_TRUE(is_locked(of_group));
  EXPECT_EQ(pawl_group_close(group), 0) << pawl_last_error();
  EXPECT_TRUE(is_locked(of_group));
  ::close(of_heap);
  ::close(of_group);
}

// Whether a descriptor that came along holds a lock of an open file, as that of the writer is.
// Without memory: in a child of a program with threads the address sanitizer may have none to give.
bool holds_a_lock() {
  constexpr int kNumbersMax = 64;
  for (int number = 0; number < kNumbersMax; ++number) {
    std::array<char, 64> path{};
    (void)std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", number);
    const int opened = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    std::array<char, 1024> facts{};
    const bool is_read = opened >= 0 && ::read(opened, facts.data(), facts.size() - 1) > 0;
    if (opened >= 0) ::close(opened);
    if (is_read && std::strstr(facts.data(), "OFDLCK") != nullptr) return true;
  }
  return false;
}

// Another thread was about to open a file: the child kept the writer's lock when its parent died.
TEST_F(Process, AChildForkedWhileAFileWasOpenedKeptItsLock) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer permits no threads in a forked child";
#endif
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  constexpr int kChildren = test::at_size(60, 200);
  constexpr int kLooks = 5;
  constexpr useconds_t kLookUs = 2'000;
  std::atomic<bool> may_end{false};
  std::atomic<int> opened{0};
  std::thread opening([&] {
    while (!may_end) {
      void* const at =
          pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0);
      if (at != MAP_FAILED && pawl_munmap(at, kBytes) == 0) ++opened;
    }
  });
  int keeping = 0;
  for (int i = 0; i < kChildren; ++i) {
    ::usleep(static_cast<useconds_t>(i) * 7);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kSecondsMax);
      bool is_kept = false;
      for (int look = 0; look < kLooks && !is_kept; ++look) {
        ::usleep(kLookUs);
        is_kept = holds_a_lock();
      }
      ::_exit(is_kept ? 1 : 0);
    }
    keeping += ended(child);
  }
  may_end = true;
  opening.join();
  EXPECT_EQ(keeping, 0);
  EXPECT_GT(opened, 0);
}

std::atomic<int> children_of_handler{0};

// As fork() may not: it would wait for the locks of the thread that it interrupted.
TEST_F(Process, AHandlerThatInterruptedACommitMakesAChildWithoutHandlers) {
#ifdef PAWL_SANITIZED
  GTEST_SKIP() << "a sanitizer has locks of its own";
#endif
  EXPECT_EQ(alone([&] {
              const std::string path = directory_ / "other";
              write_file(path, std::string(kBytes, 'a'));
              const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
              char* const at = static_cast<char*>(
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0));
              if (at == MAP_FAILED) return false;
              ::signal(SIGPROF, [](int) {
                const int errno_before = errno;
                const pid_t child = child_of_underscore_fork();
                if (child == 0) ::_exit(0);
                ::waitpid(child, nullptr, 0);
                ++children_of_handler;
                errno = errno_before;
              });
              constexpr itimerval kEach{.it_interval = {.tv_sec = 0, .tv_usec = 500},
                                        .it_value = {.tv_sec = 0, .tv_usec = 500}};
              ::setitimer(ITIMER_PROF, &kEach, nullptr);
              constexpr int kChildren = 20;
              for (int i = 0; children_of_handler < kChildren; ++i) {
                std::memset(at, 'a' + i % 2, kBytes);
                if (pawl_msync(at, kBytes, MS_SYNC) != 0) return false;
              }
              ::setitimer(ITIMER_PROF, nullptr, nullptr);
              return pawl_munmap(at, kBytes) == 0;
            }),
            0);
}

// What the documents say of threads with little stack.
TEST_F(Process, CallsNeedNoMoreStackThanTheDocumentsSay) {
#ifdef PAWL_SANITIZED
  GTEST_SKIP() << "a sanitizer takes more stack";
#endif
  constexpr std::size_t kStackBytes = std::size_t{32} << 10;
  const std::string copy = directory_ / "copy";
  const std::string heap = directory_ / "heap";
  void* at = bytes_;
  std::memset(at, 's', kBytes);
  const std::vector<std::function<bool()>> calls{
      [&] { return pawl_msync(at, kBytes, MS_SYNC) == 0; },
      [&] { return pawl_msync(at, kBytes, MS_ASYNC) == 0 && pawl_wait(at) == 0; },
      [&] { return pawl_msync(at, kPageBytes, MS_INVALIDATE) == 0; },
      [&] { return pawl_msync(at, kBytes, MS_INVALIDATE) == 0; },
      [&] { return pawl_ftruncate(descriptor_, 5000) == 0; },
      [&] { return pawl_ftruncate(descriptor_, kBytes) == 0; },
      [&] { return pawl_msync(at, kBytes, MS_SYNC) == 0; },
      [&] { return pawl_snapshot(path_.c_str(), copy.c_str(), PAWL_SNAPSHOT_REPLACE) == 0; },
      [&] { return pawl_munmap(at, kBytes) == 0; },
      [&] { return pawl_recover(path_.c_str()) == 0; },
      [&] {
        at = pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0);
        return at != MAP_FAILED;
      },
      [&] {
        pawl_heap* const opened = pawl_heap_open(heap.c_str(), nullptr);
        return opened != nullptr && pawl_heap_malloc(opened, 1 << 20) != nullptr &&
               pawl_heap_sync(opened) == 0 && pawl_heap_close(opened) == 0;
      },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    struct Run {
      const std::function<bool()>& call;
      bool is_ok = false;
    } run{calls[i]};
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ASSERT_EQ(::pthread_attr_setstacksize(&attributes, kStackBytes), 0);
    pthread_t thread{};
    const auto body = [](void* of) -> void* {
      auto& own = *static_cast<Run*>(of);
      own.is_ok = own.call();
      return nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, &attributes, body, &run), 0);
    ::pthread_join(thread, nullptr);
    ::pthread_attr_destroy(&attributes);
    EXPECT_TRUE(run.is_ok) << i << ": " << pawl_last_error();
  }
}

// With no descriptor left, nobody could read which locks the program holds, and they were dropped.
TEST_F(Process, TheProgramsLocksWereDroppedForWantOfADescriptor) {
#ifdef PAWL_SANITIZED
  GTEST_SKIP() << "to look at objects the sanitizer itself needs a descriptor";
#endif
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
  const auto may_lock = [&] { return ::fcntl(descriptor_, F_SETLK, &lock) == 0; };
  constexpr int kSpareMax = 6;
  for (int spare = 1; spare < kSpareMax; ++spare) {
    EXPECT_EQ(alone([&] {
                if (!may_lock()) return false;
                const rlimit few = {64, 64};
                ::setrlimit(RLIMIT_NOFILE, &few);
                std::vector<int> taken;
                for (int number = 0; (number = ::open("/dev/null", O_RDONLY)) >= 0;)
                  taken.push_back(number);
                for (int i = 0; i < spare; ++i) ::close(taken[taken.size() - 1 - i]);
                if (pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_,
                              0) != MAP_FAILED)
                  return true;
                const pid_t child = ::fork();
                if (child == 0) ::_exit(may_lock() ? 1 : 0);
                return ended(child) == 0;
              }),
              0)
        << spare;
  }
}

// As daemons do.
TEST_F(Process, ClosingAllDescriptorsInOneCallSparesThoseOfPawl) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  for (const bool by_range : {false, true}) {
    EXPECT_EQ(alone([&] {
                const int descriptor = ::open(path_.c_str(), O_RDWR);
                char* const at = static_cast<char*>(
                    pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0));
                if (at == MAP_FAILED) return false;
                constexpr int kFirst = 3;
                if (by_range) {
                  if (::close_range(kFirst, ~0u, 0) != 0) return false;
                } else {
                  ::closefrom(kFirst);
                }
                if (::fcntl(descriptor, F_GETFD) != -1) return false;
                std::memset(at, by_range ? 'r' : 'f', kBytes);
                return pawl_msync(at, kBytes, MS_SYNC) == 0 && pawl_munmap(at, kBytes) == 0;
              }),
              0);
    EXPECT_TRUE(read_file(path_) == std::string(kBytes, by_range ? 'r' : 'f'));
  }
}

// The number of the empty file whose pages Pawl shows past the end of a file; -1: there is none.
int past_end_descriptor() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failure;
    const std::string target = std::filesystem::read_symlink(entry.path(), failure).string();
    if (target.starts_with("/memfd:pawl-past-end")) return std::stoi(entry.path().filename());
  }
  return -1;
}

TEST_F(Process, PastTheEndNoFileOfTheProgramIsShown) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  const std::string own = directory_ / "own";
  write_file(own, std::string(kBytes, 's'));
  EXPECT_EQ(alone([&] {
              const int descriptor = ::open(path_.c_str(), O_RDWR);
              char* const at = static_cast<char*>(
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0));
              std::array<int, 2> ends{};
              if (at == MAP_FAILED || ::pipe(ends.data()) != 0) return false;
              const int past_end = past_end_descriptor();
              const int number = ::open(own.c_str(), O_RDWR);
              if (past_end < 0 || ::dup2(number, past_end) != past_end) return false;
              // Where a store would raise SIGBUS the kernel cannot load.
              const auto is_past_end = [&](std::size_t from) {
                return ::write(ends[1], at + from, 1) == -1 && errno == EFAULT;
              };
              if (pawl_ftruncate(descriptor, kPageBytes) != 0 || !is_past_end(kPageBytes))
                return false;
              // The one that was made anew is spared, as the first.
              ::closefrom(3);
              return past_end_descriptor() >= 0 && pawl_msync(at, kBytes, MS_SYNC) == 0 &&
                     pawl_munmap(at, kBytes) == 0;
            }),
            0);
  EXPECT_EQ(read_file(own), std::string(kBytes, 's'));
  EXPECT_EQ(read_file(path_), std::string(kPageBytes, 'a'));
}

// Each call, whether it succeeds or fails, leaves as many descriptors open as there were.
TEST_F(Process, NoCallLeavesADescriptorOpen) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  const std::string group = directory_ / "group";
  const std::string full = directory_ / "full";
  write_file(full, "content");
  const std::string copy = directory_ / "copy";
  const std::string fifo = directory_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string hindered = directory_ / "hindered";
  write_file(hindered, std::string(kBytes, 'h'));
  ASSERT_EQ(::mkdir((hindered + ".pawl").c_str(), 0700), 0);
  const auto map = [&](const std::string& path, int flags) {
    const int descriptor = ::open(path.c_str(), flags);
    void* const at = pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    ::close(descriptor);
    if (at == MAP_FAILED) return false;
    return pawl_munmap(at, kBytes) == 0;
  };
  const auto group_of = [&](const std::string& path) {
    pawl_group* const opened = pawl_group_open(group.c_str(), nullptr);
    if (opened == nullptr) return false;
    const int descriptor = ::open(path.c_str(), O_RDWR);
    void* const at =
        pawl_group_mmap(opened, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
    ::close(descriptor);
    const bool is_mapped = at != MAP_FAILED && pawl_munmap(at, kBytes) == 0;
    return pawl_group_close(opened) == 0 && is_mapped;
  };
  const NamedCalls calls = {
      {"map", [&] { return map(path_, O_RDWR); }},
      {"map read-only", [&] { return !map(path_, O_RDONLY); }},
      {"map hindered", [&] { return !map(hindered, O_RDWR); }},
      {"recover", [&] { return pawl_recover(path_.c_str()) == 0; }},
      {"recover hindered", [&] { return pawl_recover(hindered.c_str()) == -1; }},
      {"recover nothing", [&] { return pawl_recover((path_ + "x").c_str()) == -1; }},
      {"recover a pipe", [&] { return pawl_recover(fifo.c_str()) == -1; }},
      {"snapshot",
       [&] { return pawl_snapshot(path_.c_str(), copy.c_str(), PAWL_SNAPSHOT_REPLACE) == 0; }},
      {"snapshot again", [&] { return pawl_snapshot(path_.c_str(), copy.c_str(), 0) == -1; }},
      {"snapshot hindered",
       [&] { return pawl_snapshot(hindered.c_str(), (copy + "2").c_str(), 0) == -1; }},
      {"group", [&] { return group_of(path_); }},
      {"group hindered", [&] { return !group_of(hindered); }},
      {"group of a file", [&] { return pawl_group_open(full.c_str(), nullptr) == nullptr; }},
      {"group of a pipe", [&] { return pawl_group_open(fifo.c_str(), nullptr) == nullptr; }},
  };
  expect_no_descriptor_left_by(calls);
}

// The program's own lock on the file is why a descriptor of it may not simply be closed: each call
// left another one open.
TEST_F(Process, NoCallLeavesADescriptorOpenOfAFileThatTheProgramHasLocked) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
  ASSERT_EQ(::fcntl(descriptor_, F_SETLK, &lock), 0);
  expect_no_descriptor_left_by(recovery_and_copies(path_, directory_ / "copy"));
  const auto is_locked = [&] {
    struct flock asked = lock;
    return ::fcntl(descriptor_, F_GETLK, &asked) == 0 && asked.l_type == F_WRLCK;
  };
  EXPECT_EQ(alone(is_locked), 0) << "the program's lock was dropped";
  // Without it nothing waits any more.
  lock.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(descriptor_, F_SETLK, &lock), 0);
  const std::size_t before = open_descriptors();
  EXPECT_EQ(pawl_recover(path_.c_str()), 0);
  EXPECT_LT(open_descriptors(), before);
}

// The thread that makes commits durable behind the caller was asked for when the commit was made,
// and where the system gave none the mapping had ended.
TEST_F(Process, ACommitThatIsDurableLaterEndedTheMappingForWantOfAThread) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "to be another user, whom the limit binds, takes root";
  constexpr uid_t kBound = 51234;
  ASSERT_EQ(::chown(directory_.path().c_str(), kBound, kBound), 0);
  ASSERT_EQ(::chown(path_.c_str(), kBound, kBound), 0);
  EXPECT_EQ(alone([&] {
              if (::setresuid(kBound, kBound, kBound) != 0) return false;
              auto* const at = static_cast<char*>(
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
              const rlimit none{0, 0};
              if (at == MAP_FAILED || ::setrlimit(RLIMIT_NPROC, &none) != 0) return false;
              std::memset(at, 'b', kBytes);
              if (pawl_msync(at, kBytes, MS_ASYNC) != 0) return false;
              std::memset(at, 'c', kBytes);
              return pawl_msync(at, kBytes, MS_SYNC) == 0 && pawl_munmap(at, kBytes) == 0;
            }),
            0);
  EXPECT_EQ(read_file(path_), std::string(kBytes, 'c'));
}

// Two readings of the kernel's table of locks were never the same, and each descriptor waited.
TEST_F(Process, NoCallLeavesADescriptorOpenWhileOthersGiveUpLocks) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  const test::LocksOfAnother other(directory_ / "elsewhere");
  expect_no_descriptor_left_by(recovery_and_copies(path_, directory_ / "copy"));
}

// The kernel's table of locks is read in pieces: one was missed where others were given up
// meanwhile, and the program's went with the descriptor that was closed.
TEST_F(Process, TheProgramsLocksWereDroppedWhileOthersGaveUpLocks) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
  ASSERT_EQ(::fcntl(descriptor_, F_SETLK, &lock), 0);
  const test::LocksOfAnother other(directory_ / "elsewhere");
  for (int round = 0; round < test::at_size(50, 150) && !HasFailure(); ++round) {
    void* const at = pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0);
    ASSERT_NE(at, MAP_FAILED) << pawl_last_error();
    ASSERT_EQ(pawl_munmap(at, kBytes), 0);
    EXPECT_EQ(alone([&] {
                struct flock asked = lock;
                return ::fcntl(descriptor_, F_GETLK, &asked) == 0 && asked.l_type == F_WRLCK;
              }),
              0)
        << "dropped in round " << round;
  }
}

// By the numbers of the /proc that is mounted, the process of a new PID namespace was another one.
TEST_F(Process, AdviceToItselfInANewPidNamespaceTookStoresAway) {
#ifdef PAWL_SANITIZED
  GTEST_SKIP() << "the sanitizer has wrappers of its own around calls on memory";
#endif
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  constexpr int kNoNamespace = 77;
  const pid_t outside = ::fork();
  if (outside == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(kNoNamespace);
    const pid_t inside = ::fork();
    if (inside == 0) {
      char* const at = static_cast<char*>(
          pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_, 0));
      if (at == MAP_FAILED) ::_exit(2);
      at[0] = 'm';
      iovec range{at, kBytes};
      const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
      const bool is_refused = ::process_madvise(self, &range, 1, MADV_DONTNEED, 0) == -1;
      ::_exit(is_refused && at[0] == 'm' && pawl_munmap(at, kBytes) == 0 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(inside, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  int status = 0;
  ::waitpid(outside, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoNamespace)
    GTEST_SKIP() << "a PID namespace takes root";
  EXPECT_EQ(status, 0);
}

// The number was the file's still, and the kernel appended what was to be overwritten.
TEST_F(Process, TheNumberOfPawlsDescriptorWasOpenedForAppending) {
  ASSERT_EQ(pawl_munmap(bytes_, kBytes), 0);
  EXPECT_EQ(alone([&] {
              struct stat wanted{};
              const int descriptor = ::open(path_.c_str(), O_RDWR);
              ::fstat(descriptor, &wanted);
              char* const at = static_cast<char*>(
                  pawl_mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0));
              if (at == MAP_FAILED) return false;
              int reopened = 0;
              for (int number = 3; number < 64; ++number) {
                struct stat found{};
                if (number == descriptor || number == descriptor_ || ::fstat(number, &found) != 0 ||
                    found.st_ino != wanted.st_ino || found.st_dev != wanted.st_dev)
                  continue;
                const int again = ::open(path_.c_str(), O_RDWR | O_APPEND);
                reopened += ::dup2(again, number) == number ? 1 : 0;
                ::close(again);
              }
              if (reopened == 0) return false;
              std::memset(at, 'a', kBytes);
              return pawl_msync(at, kBytes, MS_SYNC) == -1 && errno == EIO;
            }),
            0);
  EXPECT_EQ(std::filesystem::file_size(path_), kBytes);
}

}  // namespace
}  // namespace pawl
