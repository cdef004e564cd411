// The kernel refuses one of the calls on memory that a call of Pawl's makes, each in its turn, or
// all that would take more than a limit: the call has done what was asked, or nothing.  Memory
// holds what it held, stores go on being found, and the file becomes what the program put there.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "medium/medium.h"
#include "pawl/pawl.h"
#include "pawl/store.h"
#include "support/failing_system_calls.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::size_t kWindow = 32 * kPageBytes;

// At a limit: without memory.
[[noreturn]] void fail_trial(const char* what) {
  std::fprintf(stderr, "failed: %s (errno %d; pawl: %s)\n", what, errno, pawl_last_error());
  ::_exit(1);
}
void require(bool holds, const char* what) {
  if (!holds) fail_trial(what);
}

// A file, its window, and what both should hold.
struct Program {
  std::string path;
  int tracker = PAWL_TRACKER_AUTO;
  int descriptor = -1;
  char* window = nullptr;
  std::size_t length = kWindow;
  std::string committed;
  std::string content;  // as the program sees it

  void open(std::size_t file_bytes) {
    // At a limit they take no more memory.
    committed.reserve(4 * kWindow);
    content.reserve(4 * kWindow);
    committed.assign(file_bytes, '.');
    content = committed;
    test::write_file(path, committed);
    descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    pawl_options options{};
    require(descriptor >= 0 && pawl_options_init(&options) == 0, "open");
    options.tracker = tracker;
    options.journal_size_bytes = std::uint64_t{1} << 20;
    void* const mapped =
        pawl_mmap_with(nullptr, kWindow, kReadWrite, MAP_ATOMIC, descriptor, 0, &options);
    require(mapped != MAP_FAILED, "map");
    window = static_cast<char*>(mapped);
    length = kWindow;
  }
  std::size_t shown() const { return std::min(length, content.size()); }
  void store(std::size_t offset, const char* text) {
    std::memcpy(window + offset, text, std::strlen(text));
    pawl_stored(window + offset, std::strlen(text));
    content.replace(offset, std::strlen(text), text);
  }
  void store_on_pages(std::size_t step, const char* text) {
    for (std::size_t page = 0; page * kPageBytes + 64 <= shown(); page += step)
      store(page * kPageBytes + 8, text);
  }
  void resize(std::size_t bytes) {
    require(pawl_ftruncate(descriptor, static_cast<off_t>(bytes)) == 0, "resize");
    content.resize(bytes, '\0');
  }
  bool commit() {
    if (pawl_msync(window, length, MS_SYNC) != 0) return false;
    committed = content;
    return true;
  }
  // What each trial begins with: some that is committed, and some that is not.
  void begin(std::size_t file_bytes = kWindow / 2) {
    open(file_bytes);
    store_on_pages(3, "committed");
    require(commit(), "first commit");
    store_on_pages(2, "pending");
  }
  void check_memory(const char* when) const {
    if (std::memcmp(window, content.data(), shown()) == 0) return;
    std::size_t at = 0;
    while (window[at] == content[at]) ++at;
    std::fprintf(stderr, "byte %zu of memory is another ", at);
    fail_trial(when);
  }
  void check_and_end() {
    check_memory("after the call");
    store_on_pages(1, "later");
    check_memory("after stores");
    require(commit(), "the commit after the call");
    require(pawl_munmap(window, length) == 0, "unmap");
    ::close(descriptor);
    require(test::read_file(path) == committed, "the file is another");
  }
};

struct Operation {
  const char* name;
  void (*prepare)(Program& program);
  // 0, or an errno; on success the program has what was asked for.
  int (*call)(Program& program);
};

int move(Program& program, std::size_t new_length, int flags, void* to = nullptr) {
  void* const moved = ::mremap(program.window, program.length, new_length, flags, to);
  if (moved == MAP_FAILED) return errno;
  program.window = static_cast<char*>(moved);
  program.length = new_length;
  return 0;
}
// Somebody's memory behind the window.
void block(const Program& program) {
  void* const blocked =
      ::mmap(program.window + program.length, kPageBytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  require(blocked != MAP_FAILED || errno == EEXIST, "block");
}
int resize(Program& program, std::size_t bytes) {
  if (pawl_ftruncate(program.descriptor, static_cast<off_t>(bytes)) != 0) return errno;
  program.content.resize(bytes, '\0');
  return 0;
}
void begin(Program& program) { program.begin(); }
void begin_full(Program& program) { program.begin(kWindow); }
void begin_beyond(Program& program) { program.begin(2 * kWindow); }
void begin_grown(Program& program) {
  program.begin();
  program.resize(kWindow * 3 / 4 + 100);
  program.store_on_pages(2, "growth");
}
// Growth that was committed, and more.
void begin_twice_grown(Program& program) {
  begin_grown(program);
  require(program.commit(), "commit of growth");
  program.resize(kWindow);
  program.store_on_pages(3, "again");
}
void begin_cut(Program& program) {
  program.begin();
  program.resize(kWindow / 4 + 100);
  program.resize(kWindow / 2);
  program.store_on_pages(2, "regrown");
}
int protect(Program& program, int protection) {
  char* const at = program.window + kWindow / 8;
  if (::mprotect(at, kWindow / 2, protection) != 0) return errno;
  const bool is_open = ::mprotect(at, kWindow / 2, kReadWrite) == 0;
  require(is_open || errno == ENOMEM, "to protect again");
  if (!is_open && ::mprotect(program.window, program.length, kReadWrite) != 0)
    fail_trial("to protect the whole again");
  return 0;
}
int roll_back(Program& program, std::size_t length) {
  if (pawl_msync(program.window, length, MS_INVALIDATE) != 0) return errno;
  if (length == program.length)
    program.content = program.committed;
  else
    program.content.replace(0, length, program.committed, 0, length);
  return 0;
}

const Operation kOperations[] = {
    {"MremapLonger",
     [](Program& program) {
       begin_beyond(program);
       require(move(program, kWindow / 2, 0) == 0, "make it shorter first");
     },
     [](Program& program) { return move(program, kWindow, MREMAP_MAYMOVE); }},
    {"MremapLongerBehindGrowth",
     [](Program& program) {
       begin_twice_grown(program);
       require(move(program, kWindow / 2, 0) == 0, "make it shorter first");
     },
     [](Program& program) { return move(program, kWindow, MREMAP_MAYMOVE); }},
    {"MremapLongerElsewhere",
     [](Program& program) {
       begin_beyond(program);
       block(program);
     },
     [](Program& program) { return move(program, 3 * kWindow, MREMAP_MAYMOVE); }},
    {"MremapShorter", begin_grown,
     [](Program& program) { return move(program, kWindow / 4, MREMAP_MAYMOVE); }},
    {"MremapFixed", begin_grown,
     [](Program& program) {
       void* const to = ::mmap(nullptr, 2 * kWindow, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       if (to == MAP_FAILED) return errno;
       if (program.tracker == PAWL_TRACKER_STORE) {
         // Marks are seen in their region only.
         return move(program, kWindow, MREMAP_MAYMOVE | MREMAP_FIXED, program.window + 8 * kWindow);
       }
       return move(program, 2 * kWindow, MREMAP_MAYMOVE | MREMAP_FIXED, to);
     }},
    {"Growth", begin, [](Program& program) { return resize(program, kWindow * 3 / 4); }},
    {"GrowthFromWithinAPage",
     [](Program& program) {
       begin_grown(program);
       program.window[program.content.size() + 7] = 'x';
     },
     [](Program& program) { return resize(program, kWindow); }},
    {"Cut", begin_full, [](Program& program) { return resize(program, kWindow / 4); }},
    {"CutWithinAPage", begin_twice_grown,
     [](Program& program) { return resize(program, kWindow * 5 / 8 + 100); }},
    {"CutToNothing", begin, [](Program& program) { return resize(program, 0); }},
    {"Rollback", begin, [](Program& program) { return roll_back(program, program.length); }},
    {"RollbackOfGrowth", begin_grown,
     [](Program& program) { return roll_back(program, program.length); }},
    {"RollbackOfMoreGrowth", begin_twice_grown,
     [](Program& program) { return roll_back(program, program.length); }},
    {"RollbackOfACut", begin_cut,
     [](Program& program) { return roll_back(program, program.length); }},
    {"Commit", begin_grown, [](Program& program) { return program.commit() ? 0 : errno; }},
    {"ProtectReadOnly", begin_grown, [](Program& program) { return protect(program, PROT_READ); }},
    {"ProtectNone", begin_twice_grown,
     [](Program& program) { return protect(program, PROT_NONE); }},
    {"Lock", begin_grown,
     [](Program& program) {
       const int outcome = ::mlock(program.window, kWindow / 2) == 0 ? 0 : errno;
       ::munlock(program.window, kWindow / 2);
       return outcome;
     }},
    {"Advice", begin_grown,
     [](Program& program) {
       return ::madvise(program.window, program.length, MADV_SEQUENTIAL) == 0 ? 0 : errno;
     }},
};

class RefusedMemory : public testing::TestWithParam<std::tuple<int, Operation>> {
 protected:
  void SetUp() override {
#ifdef PAWL_SANITIZED
    GTEST_SKIP() << "libc's calls on memory are the sanitizer's";
#endif
  }
  // In a process of its own, which ends with 0.
  static void in_child(const std::function<void()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        work();
      } catch (const std::bad_alloc&) {
        fail_trial("no memory for the test");
      }
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  Program program() const {
    Program made;
    made.path = path_;
    made.tracker = std::get<0>(GetParam());
    return made;
  }
  const Operation& operation() const { return std::get<1>(GetParam()); }

  // With so much of something left: refuse(n) takes away all but that, and allow() gives it back.
  template <class Refuse, class Allow>
  void at_a_limit(long left_max, const Refuse& refuse, const Allow& allow) {
    in_child([&] {
      for (long left = 0; left <= left_max; ++left) {
        Program tested = program();
        operation().prepare(tested);
        refuse(left);
        const int outcome = operation().call(tested);
        // EPERM: no memory at all may be locked.
        const bool is_refused = outcome == ENOMEM || outcome == EAGAIN || outcome == EPERM;
        std::fprintf(stderr, "with %ld left: errno %d\n", left, outcome);
        require(is_refused || outcome == 0, "another error than that of the limit");
        tested.check_memory("at the limit");
        allow();
        tested.check_and_end();
      }
    });
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "file";
};

TEST_P(RefusedMemory, OneCallThatFailsChangesNothing) {
  in_child([&] {
    test::FailingSystemCalls calls({SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap,
                                    SYS_ioctl, SYS_memfd_create, SYS_mlock, SYS_mlock2});
    if (!calls.is_there()) {
      std::fprintf(stderr, "no filter of system calls that asks\n");
      return;
    }
    long made = 1;
    for (long failing = 0; failing < made; ++failing) {
      Program tested = program();
      operation().prepare(tested);
      calls.fail(failing, ENOMEM);
      const int outcome = operation().call(tested);
      made = std::max(calls.pass(), failing);
      std::fprintf(stderr, "call %ld of %ld: errno %d\n", failing, made, outcome);
      tested.check_and_end();
    }
  });
}

// Areas of memory, as many as the kernel allows, but for some.
class Areas {
 public:
  // Elsewhere it would take too long.
  static bool can_be_filled() {
    std::size_t areas_max = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> areas_max;
    return areas_max < kPages;
  }
  void fill(long left) {
    if (pages_ == nullptr) {
      singles_.reserve(2 * kReserve + 16);
      void* const mapped = ::mmap(nullptr, kPages * kPageBytes, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      require(mapped != MAP_FAILED, "reserve");
      pages_ = static_cast<char*>(mapped);
    }
    while (split_ < kPages / 2 && ::mprotect(page(split_), kPageBytes, PROT_READ) == 0) ++split_;
    join(kReserve);
    for (;;) {
      void* const single =
          ::mmap(nullptr, kPageBytes, singles_.size() % 2 == 0 ? PROT_READ : PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (single == MAP_FAILED) break;
      singles_.push_back(single);
    }
    for (; left > 0 && !singles_.empty(); --left) pop();
  }
  void release() {
    while (!singles_.empty()) pop();
    join(kRelease);
  }

 private:
  static constexpr std::size_t kPages = 140000;
  static constexpr std::size_t kReserve = 16;
  static constexpr std::size_t kRelease = 500;
  char* page(std::size_t number) const { return pages_ + (2 * number + 1) * kPageBytes; }
  void join(std::size_t count) {
    for (; count > 0 && split_ > 0; --count) ::mprotect(page(--split_), kPageBytes, PROT_NONE);
  }
  void pop() {
    ::munmap(singles_.back(), kPageBytes);
    singles_.pop_back();
  }
  char* pages_ = nullptr;
  std::size_t split_ = 0;
  std::vector<void*> singles_;
};

TEST_P(RefusedMemory, NorDoesTheLimitOfAreas) {
  if (!Areas::can_be_filled()) GTEST_SKIP() << "vm.max_map_count is large";
  Areas areas;
  at_a_limit(8, [&](long left) { areas.fill(left); }, [&] { areas.release(); });
}

std::size_t in_status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":"))
      return std::strtoul(line.c_str() + name.size() + 1, nullptr, 10);
  }
  return 0;
}

void limit(int resource, rlim_t value) {
  rlimit now{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
  now.rlim_cur = std::min(value, now.rlim_max);
  require(::setrlimit(static_cast<__rlimit_resource>(resource), &now) == 0, "limit");
}

// Of the kibibytes that the status names, so much more is allowed.
constexpr std::size_t kStep = 4 * kPageBytes;

TEST_P(RefusedMemory, NorDoesTheLimitOfAddresses) {
  at_a_limit(
      12,
      [&](long left) {
        limit(RLIMIT_AS, in_status("VmSize") * 1024 + static_cast<std::size_t>(left) * kStep);
      },
      [] { limit(RLIMIT_AS, RLIM_INFINITY); });
}

TEST_P(RefusedMemory, NorDoesTheLimitOfLockedMemory) {
  constexpr uid_t kNobody = 65534;
  const uid_t user = ::geteuid();
  at_a_limit(
      12,
      [&](long left) {
        require(::mlockall(MCL_FUTURE) == 0, "mlockall");
        // Root has no such limit.
        require(user != 0 || ::seteuid(kNobody) == 0, "to be nobody");
        limit(RLIMIT_MEMLOCK, in_status("VmLck") * 1024 + static_cast<std::size_t>(left) * kStep);
      },
      [&] {
        ::munlockall();
        require(user != 0 || ::seteuid(user) == 0, "to be root again");
        limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
      });
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, Operation>>& tested) {
  const int tracker = std::get<0>(tested.param);
  return std::string(std::get<1>(tested.param).name) + (tracker == PAWL_TRACKER_AUTO ? "Automatic"
                                                        : tracker == PAWL_TRACKER_FAULT ? "Fault"
                                                                                        : "Store");
}

INSTANTIATE_TEST_SUITE_P(Calls, RefusedMemory,
                         testing::Combine(testing::Values(PAWL_TRACKER_AUTO, PAWL_TRACKER_FAULT,
                                                          PAWL_TRACKER_STORE),
                                          testing::ValuesIn(kOperations)),
                         name_of);

}  // namespace
}  // namespace pawl
