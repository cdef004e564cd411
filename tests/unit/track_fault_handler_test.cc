// The fault tracker among a program's own signal handlers, and system calls that store.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "medium/inherited_memory.h"
#include "medium/medium.h"
#include "track/kernel_stores.h"
#include "track/tracker.h"

namespace pawl {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif
#else
constexpr bool kThreadSanitizer = false;
#endif

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::size_t kPages = 64;
constexpr std::size_t kLength = kPages * kPageBytes;

std::atomic<int> handled{0};
sigjmp_buf escape;
char* guarded_page = nullptr;
char* watched_page = nullptr;

class FaultHandlerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    link_kernel_stores_io();
    link_kernel_stores_other();
    handled = 0;
    sigaction(SIGSEGV, nullptr, &before_);
    start_ = map(kReadWrite);
    ASSERT_TRUE(inherited_memory::add(start_, kLength).ok());  // as a window's, for children
    foreign_ = map(PROT_READ);
    guarded_page = foreign_;
    watched_page = start_;
  }
  void TearDown() override {
    tracker_.reset();
    inherited_memory::remove(start_, kLength);
    munmap(start_, kLength);
    munmap(foreign_, kLength);
    sigaction(SIGSEGV, &before_, nullptr);
  }
  static char* map(int protection) {
    void* memory = mmap(nullptr, kLength, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<char*>(memory);
  }
  void watch(int protection = kReadWrite) {
    tracker_ = std::move(make_fault_tracker().value());
    ASSERT_TRUE(tracker_->watch(start_, kLength, protection).ok());
  }
  PageRuns collect() {
    PageRuns stored;
    EXPECT_TRUE(tracker_->collect(start_, kLength, stored).ok());
    return stored;
  }
  bool collect_has(std::size_t page) {
    return collect().contains(reinterpret_cast<std::uint64_t>(start_) / kPageBytes + page);
  }
  static void store(char* address) { *static_cast<volatile char*>(address) = 1; }
  char* page(std::size_t number) const { return start_ + number * kPageBytes; }

  char* start_ = nullptr;
  char* foreign_ = nullptr;
  std::unique_ptr<Tracker> tracker_;
  struct sigaction before_{};
};

// Opens the page that faulted, as a garbage collector would, and stores to a watched page.
void open_guarded(int /*signal_number*/, siginfo_t* info, void* /*context*/) {
  ++handled;
  if (info->si_addr == guarded_page) {
    mprotect(guarded_page, kPageBytes, kReadWrite);
    *static_cast<volatile char*>(watched_page + 7 * kPageBytes) = 1;
  }
}

void escape_by_jump(int /*signal_number*/) {
  ++handled;
  siglongjmp(escape, 1);
}

void install(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ASSERT_EQ(sigaction(SIGSEGV, &action, nullptr), 0);
}

// Past every wrapper, as a statically linked library might have it.
using SigactionFunction = int (*)(int, const struct sigaction*, struct sigaction*);
SigactionFunction next_sigaction() {
  return reinterpret_cast<SigactionFunction>(dlsym(RTLD_NEXT, "sigaction"));
}

void install_past_wrappers(void (*handler)(int, siginfo_t*, void*), struct sigaction* old_action) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ASSERT_EQ(next_sigaction()(SIGSEGV, &action, old_action), 0);
}

TEST_F(FaultHandlerTest, TheHandlerThatWasThereGetsForeignFaults) {
  install(open_guarded);
  watch();
  store(page(3));
  EXPECT_EQ(handled, 0);
  store(foreign_);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(collect().page_count(), 2U) << "the handler's own store is tracked too";
}

TEST_F(FaultHandlerTest, AHandlerInstalledLaterGetsForeignFaultsOnly) {
  watch();
  install(open_guarded);
  store(page(3));
  EXPECT_EQ(handled, 0);
  store(foreign_);
  EXPECT_EQ(handled, 1);
  EXPECT_TRUE(collect_has(3));
  struct sigaction seen{};
  ASSERT_EQ(sigaction(SIGSEGV, nullptr, &seen), 0);
  EXPECT_EQ(seen.sa_sigaction, open_guarded) << "the program sees its own handler";
}

struct sigaction handed_on_to{};
void hand_on(int signal_number, siginfo_t* info, void* context) {
  ++handled;
  handed_on_to.sa_sigaction(signal_number, info, context);
}

TEST_F(FaultHandlerTest, AHandlerInstalledPastUsIsPutBehindAgainAndMayHandOn) {
  install(open_guarded);
  watch();
  install_past_wrappers(hand_on, &handed_on_to);
  (void)collect();
  store(page(5));
  EXPECT_EQ(handled, 0);
  EXPECT_TRUE(collect_has(5));
  store(foreign_);
  EXPECT_EQ(handled, 2) << "first the new one, which hands on to the old";
}

TEST_F(FaultHandlerTest, AHandlerMayLeaveByJumpAgainAndAgain) {
  ASSERT_NE(signal(SIGSEGV, escape_by_jump), SIG_ERR);
  watch();
  for (handled = 0; handled < 5;) {
    const int handled_before = handled;
    if (sigsetjmp(escape, 1) == 0) store(foreign_);
    ASSERT_EQ(handled, handled_before + 1);
    store(page(3));
    EXPECT_TRUE(collect_has(3));
  }
}

TEST_F(FaultHandlerTest, AStoreThatTheProgramForbadeIsItsOwnFault) {
  ASSERT_NE(signal(SIGSEGV, escape_by_jump), SIG_ERR);
  mprotect(start_, kLength, PROT_READ);
  watch(PROT_READ);
  if (sigsetjmp(escape, 1) == 0) store(page(3));
  EXPECT_EQ(handled, 1);
  ASSERT_TRUE(tracker_->protect(start_, kLength, kReadWrite).ok());
  store(page(3));
  EXPECT_TRUE(collect_has(3));
  ASSERT_TRUE(tracker_->protect(page(3), kPageBytes, PROT_NONE).ok());
  if (sigsetjmp(escape, 1) == 0) store(page(3));
  EXPECT_EQ(handled, 2);
  store(page(4));
  EXPECT_EQ(handled, 2);
}

int exit_signal_of(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(20);
    work();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_F(FaultHandlerTest, WithoutAHandlerAForeignFaultKills) {
  signal(SIGSEGV, SIG_DFL);
  watch();
  EXPECT_EQ(exit_signal_of([&] { store(foreign_); }), SIGSEGV);
  EXPECT_EQ(exit_signal_of([&] { store(page(3)); }), 0);
  EXPECT_EQ(exit_signal_of([&] { raise(SIGSEGV); }), SIGSEGV);
  signal(SIGSEGV, SIG_IGN);
  EXPECT_EQ(exit_signal_of([&] { store(foreign_); }), SIGSEGV);
  EXPECT_EQ(exit_signal_of([&] { raise(SIGSEGV); }), 0);
}

// What may be written may be read, and is, by each commit.
TEST_F(FaultHandlerTest, AnArmedPageThatMayOnlyBeWrittenCanBeRead) {
  mprotect(start_, kLength, PROT_WRITE);
  watch(PROT_WRITE);
  EXPECT_EQ(exit_signal_of([&] { (void)*static_cast<volatile char*>(page(3)); }), 0);
  store(page(3));
  EXPECT_TRUE(collect_has(3));
  EXPECT_EQ(exit_signal_of([&] { (void)*static_cast<volatile char*>(page(3)); }), 0);
  ASSERT_TRUE(tracker_->protect(start_, kLength, kReadWrite).ok());
  ASSERT_TRUE(tracker_->protect(page(4), kPageBytes, PROT_WRITE).ok());
  EXPECT_EQ(exit_signal_of([&] { (void)*static_cast<volatile char*>(page(4)); }), 0);
}

TEST_F(FaultHandlerTest, AThreadThatBlocksAllSignalsMayStore) {
  watch();
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &all, nullptr), 0);
    EXPECT_EQ(sigprocmask(SIG_BLOCK, &all, nullptr), 0);
    store(page(9));
    sigset_t now;
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    EXPECT_EQ(sigismember(&now, SIGUSR1), 1);
  }).join();
  EXPECT_TRUE(collect_has(9));
}

TEST_F(FaultHandlerTest, AHandlerThatBlocksAllSignalsMayStore) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer runs handlers with SIGSEGV blocked";
  struct sigaction action{};
  action.sa_handler = [](int) { *static_cast<volatile char*>(watched_page + 11 * kPageBytes) = 1; };
  sigfillset(&action.sa_mask);
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  watch();
  ASSERT_EQ(raise(SIGUSR1), 0);
  EXPECT_TRUE(collect_has(11));
  signal(SIGUSR1, SIG_DFL);
}

TEST_F(FaultHandlerTest, AHandlerThatBlocksAllSignalsAndWasThereBeforeMayStore) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer runs handlers with SIGSEGV blocked";
  struct sigaction action{};
  action.sa_handler = [](int) { *static_cast<volatile char*>(watched_page + 11 * kPageBytes) = 1; };
  sigfillset(&action.sa_mask);
  ASSERT_EQ(next_sigaction()(SIGUSR1, &action, nullptr), 0);
  install_past_wrappers(open_guarded, nullptr);  // so that watching installs the tracker's anew
  watch();
  ASSERT_EQ(raise(SIGUSR1), 0);
  EXPECT_TRUE(collect_has(11));
  signal(SIGUSR1, SIG_DFL);
}

TEST_F(FaultHandlerTest, StoresFromASignalHandlerDuringCollectDoNotHang) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer runs handlers with SIGSEGV blocked";
  struct sigaction action{};
  action.sa_handler = [](int) {
    static std::atomic<std::size_t> turn{0};
    *static_cast<volatile char*>(watched_page + turn.fetch_add(1) % kPages * kPageBytes) = 1;
  };
  ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  watch();
  const itimerval often{{0, 200}, {0, 200}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  for (int round = 0; round < 20'000; ++round) (void)collect();
  const itimerval never{};
  ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  signal(SIGALRM, SIG_DFL);
}

// The signal by which the C library cancels a thread is none that its own calls block: it came into
// the handler, unwinding met C++ there and ended the process.
std::atomic<bool> cancelled_thread_stores{false};
void* store_until_cancelled(void* /*unused*/) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  cancelled_thread_stores = true;
  for (std::size_t at = 0;; ++at)
    *static_cast<volatile char*>(watched_page + at % kPages * kPageBytes) = 1;
}

TEST_F(FaultHandlerTest, AThreadMayBeCancelledInTheMidstOfAStore) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer cancels threads within its own code";
  watch();
  for (int round = 0; round < 150; ++round) {
    cancelled_thread_stores = false;
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, nullptr, store_until_cancelled, nullptr), 0);
    while (!cancelled_thread_stores) std::this_thread::yield();
    for (int collects = 0; collects < round % 10; ++collects) (void)collect();
    ASSERT_EQ(pthread_cancel(thread), 0);
    void* outcome = nullptr;
    ASSERT_EQ(pthread_join(thread, &outcome), 0);
    EXPECT_EQ(outcome, PTHREAD_CANCELED);
    (void)collect();
  }
  store(page(3));
  EXPECT_TRUE(collect_has(3));
}

TEST_F(FaultHandlerTest, WrappedCallsStoreIntoArmedPages) {
  watch();
  const int zeros = open("/dev/zero", O_RDONLY);
  ASSERT_GE(zeros, 0);
  (void)collect();
  EXPECT_EQ(read(zeros, page(0), 10), 10);
  EXPECT_TRUE(collect_has(0));
  const iovec vectors[] = {{page(1), 10}, {page(3) + 4090, 10}};
  EXPECT_EQ(readv(zeros, vectors, 2), 20);
  const PageRuns stored = collect();
  EXPECT_EQ(PageRuns(stored).page_count(), 3U);
  EXPECT_EQ(getrandom(page(5), 16, 0), 16);
  EXPECT_TRUE(collect_has(5));
  EXPECT_EQ(fstat(zeros, reinterpret_cast<struct stat*>(page(6))), 0);
  EXPECT_TRUE(collect_has(6));
  EXPECT_NE(getcwd(page(7), kPageBytes), nullptr);
  EXPECT_TRUE(collect_has(7));
  EXPECT_EQ(pipe(reinterpret_cast<int*>(page(8))), 0);
  close(reinterpret_cast<int*>(page(8))[0]);
  close(reinterpret_cast<int*>(page(8))[1]);
  EXPECT_TRUE(collect_has(8));
  FILE* const stream = fopen("/dev/zero", "r");
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(fread(page(10), kPageBytes, 16, stream), 16U);
  EXPECT_TRUE(collect_has(25));
  (void)fclose(stream);
  close(zeros);
}

TEST_F(FaultHandlerTest, AnUnwrappedCallFailsLoudly) {
  watch();
  const int zeros = open("/dev/zero", O_RDONLY);
  errno = 0;
  EXPECT_EQ(syscall(SYS_read, zeros, page(0), 10), -1);
  EXPECT_EQ(errno, EFAULT);
  open_for_kernel_store(page(0), 10);
  EXPECT_EQ(syscall(SYS_read, zeros, page(0), 10), 10);
  EXPECT_TRUE(collect_has(0));
  close(zeros);
}

TEST_F(FaultHandlerTest, ACommitMeanwhileDoesNotTakeTheBufferFromABlockedCall) {
  watch();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets), 0);
  ssize_t received = 0;
  std::thread reader([&] { received = recv(sockets[1], page(30), 100, 0); });
  // The page is reported by each collect once the call has begun.
  while (!collect_has(30)) std::this_thread::yield();
  EXPECT_TRUE(collect_has(30));
  ASSERT_EQ(write(sockets[0], "pawl", 4), 4);
  reader.join();
  EXPECT_EQ(received, 4);
  EXPECT_TRUE(collect_has(30));
  EXPECT_FALSE(collect_has(30)) << "once the call is over the page is armed again";
  close(sockets[0]);
  close(sockets[1]);
}

// As a timeout does: a handler leaves a read(2) that blocks.
class LeftRead {
 public:
  LeftRead() {
    struct sigaction action{};
    action.sa_handler = [](int) { siglongjmp(escape, 1); };
    EXPECT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
    EXPECT_EQ(pipe(ends_), 0);
  }
  ~LeftRead() {
    signal(SIGALRM, SIG_DFL);
    close(ends_[0]);
    close(ends_[1]);
  }
  LeftRead(const LeftRead&) = delete;
  LeftRead& operator=(const LeftRead&) = delete;

  void into(char* buffer) const {
    if (sigsetjmp(escape, 1) != 0) return;
    const itimerval soon{{0, 0}, {0, 1000}};
    EXPECT_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
    (void)read_deep_down(buffer);
  }
  ssize_t one_that_ends(char* buffer) const {
    EXPECT_EQ(write(ends_[1], "pawl", 4), 4);
    return read(ends_[0], buffer, 4);
  }

 private:
  __attribute__((noinline)) ssize_t read_deep_down(char* buffer) const {
    volatile char stack[16384];
    stack[0] = 0;
    return read(ends_[0], buffer, 4) + stack[0];
  }
  int ends_[2] = {-1, -1};
};

// Each such call kept its page open for ever, and after 128 of them none could keep its own.
TEST_F(FaultHandlerTest, ACallThatAHandlerLeavesKeepsNoPageOpen) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer has handlers wait";
  watch();
  const LeftRead left_read;
  for (std::size_t turn = 0; turn < 150; ++turn) left_read.into(page(turn % 8));
  EXPECT_EQ(left_read.one_that_ends(page(20)), 4);
  EXPECT_TRUE(collect_has(20));
  EXPECT_TRUE(collect().empty());
  std::thread([&] { ASSERT_EQ(left_read.one_that_ends(page(21)), 4); }).join();
  EXPECT_TRUE(collect_has(21));
}

// A handler that runs on a stack of its own, above that of the call that it interrupts.
TEST_F(FaultHandlerTest, ACallInAHandlerDoesNotTakeTheBufferFromTheInterruptedOne) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer has handlers wait";
  watch();
  char above[65536];  // of the first thread's stack
  struct sigaction action{};
  action.sa_handler = [](int) {
    EXPECT_EQ(stat("/", reinterpret_cast<struct stat*>(watched_page + 11 * kPageBytes)), 0);
    ++handled;
  };
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread reader([&] {
    const stack_t stack{above, 0, sizeof above};
    EXPECT_EQ(sigaltstack(&stack, nullptr), 0);
    EXPECT_EQ(read(ends[0], page(30), 100), 4);
    const stack_t none{nullptr, SS_DISABLE, 0};
    EXPECT_EQ(sigaltstack(&none, nullptr), 0);
  });
  while (!collect_has(30)) std::this_thread::yield();
  ASSERT_EQ(pthread_kill(reader.native_handle(), SIGUSR1), 0);
  while (handled == 0) std::this_thread::yield();
  (void)collect();
  EXPECT_TRUE(collect_has(30));
  ASSERT_EQ(write(ends[1], "pawl", 4), 4);
  reader.join();
  signal(SIGUSR1, SIG_DFL);
  close(ends[0]);
  close(ends[1]);
}

// While another thread stores to a range and reads into it: what `change` does to two pages at its
// beginning is not in the way.  The table looks through 1,000 other ranges between its first place,
// which is free when the range is watched, or only then becomes free, and the next one.
enum class FirstPlace { is_for_the_range, is_for_what_comes_later };
void change_while_another_thread_stores(
    FirstPlace first_place, const std::function<void(Tracker& tracker, char* cut)>& change) {
  constexpr int kRounds = 60;
  constexpr std::size_t kBetween = 1000;
  constexpr std::size_t kStored = 200;
  constexpr std::size_t kBytes = (2 * kBetween + kStored + 4) * kPageBytes;
  void* const memory = mmap(nullptr, kBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const cut = static_cast<char*>(memory);  // two pages, and those that are stored to
  char* const stored = cut + 2 * kPageBytes;
  char* const others = stored + kStored * kPageBytes;
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(zeros, 0);
  const std::unique_ptr<Tracker> between = std::move(make_fault_tracker().value());
  for (std::size_t at = 0; at < 2 * kBetween; at += 2)
    ASSERT_TRUE(between->watch(others + at * kPageBytes, kPageBytes, kReadWrite).ok());
  std::atomic<int> round{0};
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::atomic<int> failed_reads{0};
  std::thread storing([&] {
    for (int mine = 1; mine <= kRounds; ++mine) {
      while (round.load() < mine) std::this_thread::yield();
      for (std::size_t at = 0; at < kStored; at += 2) {
        *static_cast<volatile char*>(stored + at * kPageBytes) = 1;
        begun.store(mine);
        if (read(zeros, stored + (at + 1) * kPageBytes, 1) != 1) ++failed_reads;
      }
      done.store(mine);
    }
  });
  for (int mine = 1; mine <= kRounds; ++mine) {
    std::unique_ptr<Tracker> tracker = std::move(make_fault_tracker().value());
    if (first_place == FirstPlace::is_for_the_range) between->unwatch(others, kPageBytes);
    ASSERT_TRUE(tracker->watch(cut, (2 + kStored) * kPageBytes, kReadWrite).ok());
    round.store(mine);
    while (begun.load() < mine) std::this_thread::yield();
    if (first_place == FirstPlace::is_for_what_comes_later) between->unwatch(others, kPageBytes);
    do {
      change(*tracker, cut);
    } while (done.load() < mine);
    PageRuns pages;
    EXPECT_TRUE(tracker->collect(stored, kStored * kPageBytes, pages).ok());
    EXPECT_EQ(pages.page_count(), kStored);
    tracker.reset();
    ASSERT_TRUE(between->watch(others, kPageBytes, kReadWrite).ok());
  }
  storing.join();
  EXPECT_EQ(failed_reads.load(), 0);
  close(zeros);
  munmap(memory, kBytes);
}

// A protected part is a range of its own.  While the range was cut in two, a fault in the right
// half looked for it in the left one, and the program died of it; a read(2) there failed with
// EFAULT.
TEST_F(FaultHandlerTest, APartThatIsProtectedMeanwhileIsNotInTheWayOfStores) {
  change_while_another_thread_stores(
      FirstPlace::is_for_what_comes_later, [](Tracker& tracker, char* cut) {
        EXPECT_TRUE(tracker.protect(cut + kPageBytes, kPageBytes, PROT_READ).ok());
      });
}

TEST_F(FaultHandlerTest, APartThatIsProtectedNoMoreIsNotInTheWayOfStores) {
  change_while_another_thread_stores(FirstPlace::is_for_the_range, [](Tracker& tracker, char* cut) {
    EXPECT_TRUE(tracker.protect(cut + kPageBytes, kPageBytes, PROT_READ).ok());
    EXPECT_TRUE(tracker.protect(cut + kPageBytes, kPageBytes, kReadWrite).ok());
  });
}

// Each part that a program had protected stayed a range of its own, until there was no room for
// another one, nor for any other mapping.
TEST_F(FaultHandlerTest, PartsOfOneProtectionBecomeOneRangeAgain) {
  constexpr std::size_t kMany = kWatchedRangesMax + 8;
  void* const memory =
      mmap(nullptr, kMany * kPageBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const start = static_cast<char*>(memory);
  tracker_ = std::move(make_fault_tracker().value());
  ASSERT_TRUE(tracker_->watch(start, kMany * kPageBytes, kReadWrite).ok());
  const auto count_stored = [&] {
    PageRuns stored;
    EXPECT_TRUE(tracker_->collect(start, kMany * kPageBytes, stored).ok());
    return stored.page_count();
  };
  for (std::size_t at = 1; at < kMany; ++at) {
    char* const part = start + at * kPageBytes;
    store(part);
    ASSERT_TRUE(tracker_->protect(part, kPageBytes, PROT_READ).ok()) << at;
    ASSERT_TRUE(tracker_->protect(part, kPageBytes, kReadWrite).ok()) << at;
  }
  EXPECT_EQ(count_stored(), kMany - 1) << "what was stored before is not forgotten";
  // Many parts at once.
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t at = 1; at < kMany; at += 4)
      ASSERT_TRUE(tracker_->protect(start + at * kPageBytes, kPageBytes, PROT_READ).ok()) << at;
    store(start + 2 * kPageBytes);
    ASSERT_TRUE(tracker_->protect(start, kMany * kPageBytes, kReadWrite).ok());
    store(start + 5 * kPageBytes);
    EXPECT_EQ(count_stored(), 2U);
  }
  tracker_.reset();
  munmap(memory, kMany * kPageBytes);
}

TEST_F(FaultHandlerTest, InUseOnlyWhileSomethingIsWatched) {
  EXPECT_FALSE(fault_tracker_in_use());
  watch();
  EXPECT_TRUE(fault_tracker_in_use());
  tracker_.reset();
  EXPECT_FALSE(fault_tracker_in_use());
  open_for_kernel_store(nullptr, ~std::size_t{0});
  open_for_kernel_store(start_, kLength);
}

TEST_F(FaultHandlerTest, TooManyRangesAreRefused) {
  tracker_ = std::move(make_fault_tracker().value());
  constexpr std::size_t kMany = kWatchedRangesMax * 2 + 2;
  void* memory = mmap(nullptr, kMany * kPageBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const start = static_cast<char*>(memory);
  std::size_t watched = 0;
  Status status;
  for (std::size_t page = 0; status.ok() && page < kMany; page += 2) {
    status = tracker_->watch(start + page * kPageBytes, kPageBytes, kReadWrite);
    if (status.ok()) ++watched;
  }
  EXPECT_EQ(watched, kWatchedRangesMax);
  EXPECT_EQ(status.error_number(), ENOMEM);
  store(start + 100 * kPageBytes);
  PageRuns stored;
  ASSERT_TRUE(tracker_->collect(start, kMany * kPageBytes, stored).ok());
  EXPECT_EQ(stored.page_count(), 1U);
  tracker_.reset();
  munmap(memory, kMany * kPageBytes);
}

}  // namespace
}  // namespace pawl
