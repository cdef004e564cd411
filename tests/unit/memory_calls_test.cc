// A program's own calls on the memory of a mapping: what is acknowledged afterwards is what
// recovery finds, with each tracker.  The program is a child that kills itself.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "heap/format.h"
#include "mapping/open_mappings.h"
#include "medium/address_range.h"
#include "medium/medium.h"
#include "pawl/heap.h"
#include "pawl/pawl.h"
#include "pawl/store.h"
#include "support/loop_file_system.h"
#include "support/refused_calls.h"
#include "support/temporary_directory.h"

namespace pawl {
namespace {

constexpr std::size_t kPages = 16;
constexpr std::size_t kBytes = kPages * kPageBytes;
#ifdef PAWL_SANITIZED
constexpr bool kWrapped = false;
#else
constexpr bool kWrapped = true;
#endif
constexpr int kAdviceMax = 104;
constexpr int kCollapse = 25;  // what the headers of Debian 12 lack
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

char* map_file(const std::string& path, int tracker, void* at = nullptr, int flags = 0) {
  const int descriptor = ::open(path.c_str(), O_RDWR);
  pawl_options options{};
  if (descriptor < 0 || pawl_options_init(&options) != 0) return nullptr;
  options.tracker = tracker;
  options.journal_size_bytes = std::uint64_t{1} << 20;
  void* const mapped =
      pawl_mmap_with(at, kBytes, kReadWrite, MAP_ATOMIC | flags, descriptor, 0, &options);
  ::close(descriptor);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

void store(char* at, const char* text) {
  std::memcpy(at, text, std::strlen(text));
  pawl_stored(at, std::strlen(text));
}

bool holds(const char* at, const char* text) {
  return std::memcmp(at, text, std::strlen(text)) == 0;
}

bool fails_with(long result, int error_number) { return result == -1 && errno == error_number; }

// Of a range of a window: whether it was still known as one when the kernel was to take it back.
// For the rest of the process, whose unmapping of it has no effect.
class UnmapWatch {
 public:
  UnmapWatch(const char* address, std::size_t length) {
    watched_ = range_of(address, length);
    struct sigaction action{};
    action.sa_handler = [](int /*signal*/) {
      saw_it_go_ = true;
      was_known_ = was_known_ || open_mappings::may_have_windows_in(watched_);
    };
    is_watching_ = ::sigaction(SIGSYS, &action, nullptr) == 0 &&
                   test::trap_call(SYS_munmap, static_cast<std::uint32_t>(watched_.low));
  }
  bool saw_it_go_unknown() const { return is_watching_ && saw_it_go_ && !was_known_; }

 private:
  static inline AddressRange watched_;
  static inline bool saw_it_go_ = false;
  static inline bool was_known_ = false;
  bool is_watching_ = false;
};

class MemoryCalls : public testing::TestWithParam<int> {
 protected:
  MemoryCalls() { test::write_file(path_, std::string(kBytes, '.')); }
  void SetUp() override {
    if (!kWrapped) GTEST_SKIP() << "libc's calls on memory are the sanitizer's";
  }

  // The file as recovery leaves it, after a child did that, and was killed.
  std::string recovered_after(const std::function<bool(char* mapped)>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      char* const mapped = map_file(path_, GetParam());
      if (mapped != nullptr && work(mapped)) ::kill(::getpid(), SIGKILL);
      std::fprintf(stderr, "errno %d; pawl: %s\n", errno, pawl_last_error());
      ::_exit(1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the child failed";
    EXPECT_GE(pawl_recover(path_.c_str()), 0) << pawl_last_error();
    return test::read_file(path_);
  }
  static bool commit(char* mapped) { return pawl_msync(mapped, kBytes, MS_SYNC) == 0; }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "file";
};

TEST_P(MemoryCalls, NoAdviceTakesStoresAway) {
  const std::string found = recovered_after([](char* mapped) {
    for (int advice = 0; advice <= kAdviceMax; ++advice) {
      const bool is_known = advice < 32 || advice >= 100;
      if (!is_known || advice == MADV_REMOVE || advice == MADV_DONTFORK) continue;
      char text[16];
      std::snprintf(text, sizeof text, "committed %03d", advice);
      store(mapped, text);
      if (!commit(mapped)) return false;
      store(mapped + 2048, text);
      store(mapped + kPageBytes, text);
      const int advised = ::madvise(mapped, kBytes, advice);
      if (advised != 0 && errno != EINVAL) return false;
      if (!holds(mapped, text) || !holds(mapped + 2048, text) || !holds(mapped + kPageBytes, text))
        return false;
    }
    return commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "committed 104"));
  EXPECT_TRUE(holds(found.data() + 2048, "committed 104"));
  EXPECT_TRUE(holds(found.data() + kPageBytes, "committed 104"));
}

// As the kernel has them of the memory at the address.
std::string flags_of(const char* at) {
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  bool is_here = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2)
      is_here = low <= address && address < high;
    if (is_here && line.starts_with("VmFlags:")) return line;
  }
  return {};
}

TEST_P(MemoryCalls, ARollbackKeepsAdviceAndLocks) {
  const std::string found = recovered_after([](char* mapped) {
    if (::madvise(mapped, kBytes, MADV_DONTDUMP) != 0) return false;
    if (::madvise(mapped, kBytes, MADV_DONTFORK) != 0) return false;
    if (::mlock(mapped, kBytes) != 0) return false;
    const auto has_all = [&] {
      const std::string flags = flags_of(mapped);
      for (const char* flag : {" dd", " dc", " lo"}) {
        if (flags.find(flag) == std::string::npos) return false;
      }
      return true;
    };
    if (!has_all()) return false;
    store(mapped, "committed");
    if (!commit(mapped)) return false;
    for (int round = 0; round < 3; ++round) {
      store(mapped, "discarded");
      store(mapped + kPageBytes, "discarded");
      if (pawl_msync(mapped, kBytes, MS_INVALIDATE) != 0 || !holds(mapped, "committed") ||
          holds(mapped + kPageBytes, "discarded") || !has_all())
        return false;
      store(mapped + 2 * kPageBytes, "money");
      if (!commit(mapped)) return false;
    }
    return true;
  });
  EXPECT_TRUE(holds(found.data(), "committed"));
  EXPECT_TRUE(holds(found.data() + 2 * kPageBytes, "money"));
}

// Under the tracker `scan` the kernel leaves a marker where it reclaimed a page, and where memory
// is locked its page faults do not get past one.  A temporary directory on tmpfs shows nothing.
TEST_P(MemoryCalls, ALockOfPagesThatTheKernelReclaimedNeverReturned) {
  constexpr unsigned kSecondsMax = 30;
  const auto lock_one = [](char* mapped) { return ::mlock(mapped + kPageBytes + 1, 1) == 0; };
  const auto lock_all = [](char* mapped) { return ::mlock(mapped, kBytes) == 0; };
  const auto lock_later = [](char* mapped) { return ::mlock2(mapped, kBytes, MLOCK_ONFAULT) == 0; };
  const auto lock_process = [](char* /*mapped*/) { return ::mlockall(MCL_CURRENT) == 0; };
  const auto lock_process_later = [](char* /*mapped*/) {
    return ::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
  };
  const std::function<bool(char*)> ways[] = {lock_one, lock_all, lock_later, lock_process,
                                             lock_process_later};
  for (const auto& lock : ways) {
    const std::string found = recovered_after([&](char* mapped) {
      const auto load_all = [mapped] {
        for (std::size_t page = 0; page < kPages; ++page)
          static_cast<void>(*static_cast<volatile char*>(mapped + page * kPageBytes));
      };
      store(mapped, "committed");
      load_all();
      if (!commit(mapped) || ::madvise(mapped, kBytes, MADV_PAGEOUT) != 0) return false;
      ::alarm(kSecondsMax);
      if (!lock(mapped) || flags_of(mapped + kPageBytes).find(" lo") == std::string::npos)
        return false;
      load_all();
      for (std::size_t page = 1; page < kPages; ++page) store(mapped + page * kPageBytes, "money");
      return commit(mapped) && ::munlockall() == 0 && holds(mapped, "committed");
    });
    EXPECT_TRUE(holds(found.data(), "committed"));
    for (std::size_t page = 1; page < kPages; ++page)
      EXPECT_TRUE(holds(found.data() + page * kPageBytes, "money")) << page;
  }
}

TEST_P(MemoryCalls, AdviceThatRemovesStoresZeros) {
  const std::string found = recovered_after([](char* mapped) {
    return ::madvise(mapped + kPageBytes, kPageBytes, MADV_REMOVE) == 0 &&
           mapped[kPageBytes] == 0 && commit(mapped);
  });
  EXPECT_EQ(found, std::string(kPageBytes, '.') + std::string(kPageBytes, '\0') +
                       std::string(kBytes - 2 * kPageBytes, '.'));
}

TEST_P(MemoryCalls, EachPageIsCommittedWhereHugePagesWereAskedFor) {
  const std::size_t large = std::size_t{8} << 20;
  test::write_file(path_, "");
  const std::string found = recovered_after([&](char* small) {
    if (pawl_munmap(small, kBytes) != 0) return false;
    const int descriptor = ::open(path_.c_str(), O_RDWR);
    char* const mapped =
        static_cast<char*>(pawl_mmap(nullptr, large, kReadWrite, MAP_ATOMIC, descriptor, 0));
    if (mapped == MAP_FAILED || pawl_ftruncate(descriptor, static_cast<off_t>(large)) != 0)
      return false;
    if (::madvise(mapped, large, MADV_HUGEPAGE) != 0) return false;
    for (int i = 0; i < 3; ++i) {
      if (pawl_msync(mapped, large, MS_SYNC) != 0) return false;
    }
    for (std::size_t at = 0; at < large; at += kPageBytes) store(mapped + at, "stored");
    return pawl_msync(mapped, large, MS_SYNC) == 0;
  });
  ASSERT_EQ(found.size(), large);
  for (std::size_t at = 0; at < large; at += kPageBytes)
    ASSERT_TRUE(holds(found.data() + at, "stored")) << "page " << at / kPageBytes;
}

TEST_P(MemoryCalls, AStoreAfterTheProgramsOwnProtectionIsCommitted) {
  const std::string found = recovered_after([](char* mapped) {
    for (const int closed : {PROT_READ, PROT_NONE}) {
      if (::mprotect(mapped, kBytes, closed) != 0 || !commit(mapped)) return false;
      if (::pkey_mprotect(mapped, kBytes, kReadWrite, -1) != 0) return false;
      store(mapped + (closed == PROT_READ ? 0 : kPageBytes), "money");
      if (!commit(mapped)) return false;
    }
    // A commit loads what the program itself may not.
    store(mapped + 2 * kPageBytes, "money");
    return ::mprotect(mapped + 2 * kPageBytes, kPageBytes, PROT_NONE) == 0 && commit(mapped);
  });
  for (const int page : {0, 1, 2}) EXPECT_TRUE(holds(found.data() + page * kPageBytes, "money"));
}

// Each change of a part was kept, also if a later one took its place, until there were too many:
// then the kernel had one protection and Pawl another.
// Takes mappings until the kernel has no more for this process.
bool use_up_mappings(std::size_t most) {
  const int reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const area = ::mmap(nullptr, 2 * most * kPageBytes, PROT_NONE, reserved, -1, 0);
  if (area == MAP_FAILED) return false;
  for (std::size_t i = 0; i < most; ++i) {
    char* const page = static_cast<char*>(area) + (2 * i + 1) * kPageBytes;
    if (::mprotect(page, kPageBytes, PROT_READ) != 0) return true;
  }
  return false;
}

TEST_P(MemoryCalls, AProtectionThatFailsChangesNothing) {
  constexpr std::size_t kMappingsMax = 100'000;
  std::size_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  if (most == 0 || most > kMappingsMax) GTEST_SKIP() << "the kernel gives many mappings: " << most;
  test::write_file(path_, std::string(2 * kPageBytes, '.'));
  const std::string found = recovered_after([&](char* mapped) {
    store(mapped, "committed");
    if (!commit(mapped) || !use_up_mappings(most)) return false;
    // What is past the end of the file would have to be cut in two.
    if (!fails_with(::mprotect(mapped, 3 * kPageBytes, PROT_READ), ENOMEM)) return false;
    store(mapped, "money....");
    return commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "money...."));
}

TEST_P(MemoryCalls, PartsAreProtectedAgainAndAgain) {
  const std::string found = recovered_after([](char* mapped) {
    for (int i = 0; i < 10'000; ++i) {
      const std::size_t page = 1 + i % 3;
      if (::mprotect(mapped + page * kPageBytes, 2 * kPageBytes, i % 2 ? PROT_READ : kReadWrite))
        return false;
    }
    if (::mprotect(mapped, kBytes, kReadWrite) != 0) return false;
    store(mapped, "money");
    return commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

TEST_P(MemoryCalls, AFixedMappingOverAPartIsRefused) {
  const std::string other = directory_ / "other";
  test::write_file(other, std::string(kBytes, '.'));
  const std::string found = recovered_after([&](char* mapped) {
    char* const part = mapped + kPageBytes;
    const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (map_file(other, GetParam(), part, MAP_FIXED) != nullptr || errno != EBUSY) return false;
    if (!fails_with(reinterpret_cast<long>(::mmap(part, kPageBytes, kReadWrite, fixed, -1, 0)),
                    EBUSY))
      return false;
    const int segment = ::shmget(IPC_PRIVATE, kPageBytes, IPC_CREAT | 0600);
    const void* const attached = ::shmat(segment, part, SHM_REMAP);
    ::shmctl(segment, IPC_RMID, nullptr);
    if (!fails_with(reinterpret_cast<long>(attached), EBUSY)) return false;
    void* const elsewhere = ::mmap(nullptr, kPageBytes, kReadWrite, fixed & ~MAP_FIXED, -1, 0);
    if (!fails_with(reinterpret_cast<long>(::mremap(elsewhere, kPageBytes, kPageBytes,
                                                    MREMAP_MAYMOVE | MREMAP_FIXED, part)),
                    EBUSY))
      return false;
    store(part, "money");
    return commit(mapped);
  });
  EXPECT_TRUE(holds(found.data() + kPageBytes, "money"));
  EXPECT_EQ(test::read_file(other), std::string(kBytes, '.'));
}

TEST_P(MemoryCalls, AFixedMappingOverTheWholeUnmapsIt) {
  const std::string other = directory_ / "other";
  test::write_file(other, std::string(kBytes, '.'));
  const std::string found = recovered_after([&](char* mapped) {
    store(mapped, "committed");
    if (!commit(mapped)) return false;
    store(mapped, "discarded");
    if (map_file(other, GetParam(), mapped, MAP_FIXED) != mapped) return false;
    if (!holds(mapped, ".........")) return false;
    store(mapped, "of the other file");
    return commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "committed"));
  EXPECT_GE(pawl_recover(other.c_str()), 0) << pawl_last_error();
  EXPECT_TRUE(holds(test::read_file(other).data(), "of the other file"));
}

TEST_P(MemoryCalls, AFixedMappingThatTheKernelRefusesLeavesTheMapping) {
  const std::string found = recovered_after([](char* mapped) {
    const auto is_refused = [&](void* at, int flags, int descriptor, int error_number) {
      return fails_with(
          reinterpret_cast<long>(::mmap(at, kBytes, kReadWrite, flags | MAP_FIXED, descriptor, 0)),
          error_number);
    };
    store(mapped, "money");
    if (!is_refused(mapped, MAP_SHARED, -1, EBADF)) return false;
    if (!is_refused(mapped - 1, MAP_PRIVATE | MAP_ANONYMOUS, -1, EINVAL)) return false;
    const int reader = ::open("/proc/self/exe", O_RDONLY);
    if (!is_refused(mapped, MAP_SHARED, reader, EACCES)) return false;
    void* const other = ::mmap(nullptr, kBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto move_is_refused = [&](std::size_t length, int flags, void* to) {
      return fails_with(reinterpret_cast<long>(::mremap(other, length, kBytes, flags, to)), EINVAL);
    };
    if (!move_is_refused(kBytes, MREMAP_FIXED, mapped)) return false;
    if (!move_is_refused(kBytes, MREMAP_FIXED | MREMAP_MAYMOVE, mapped + 1)) return false;
    if (!move_is_refused(0, MREMAP_FIXED | MREMAP_MAYMOVE, mapped)) return false;
    return holds(mapped, "money") && ::msync(mapped, kBytes, MS_SYNC) == 0;
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

TEST_P(MemoryCalls, MemoryThatIsMovedOverAMappingTakesItsPlace) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "committed");
    if (!commit(mapped)) return false;
    store(mapped, "discarded");
    void* const other = ::mmap(nullptr, 2 * kBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(other, "other", 5);
    if (::mremap(other, 2 * kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, mapped) != mapped)
      return false;
    return holds(mapped, "other") && fails_with(pawl_msync(mapped, kBytes, MS_SYNC), ENOMEM);
  });
  EXPECT_TRUE(holds(found.data(), "committed"));
}

TEST_P(MemoryCalls, AMappingIsUnmappedWhole) {
  const std::string found = recovered_after([&](char* mapped) {
    if (!fails_with(::munmap(mapped, kPageBytes), EINVAL)) return false;
    store(mapped, "committed");
    if (!commit(mapped)) return false;
    store(mapped, "discarded");
    return ::munmap(mapped, kBytes) == 0 && fails_with(pawl_msync(mapped, kBytes, MS_SYNC), ENOMEM);
  });
  EXPECT_TRUE(holds(found.data(), "committed"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".pawl"));
}

TEST_P(MemoryCalls, AMappingThatMovedIsFoundWhereItIs) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "money");
    if (!fails_with(reinterpret_cast<long>(
                        ::mremap(mapped + kPageBytes, kPageBytes, 2 * kPageBytes, MREMAP_MAYMOVE)),
                    EINVAL))
      return false;
    auto* const moved = static_cast<char*>(::mremap(mapped, kBytes, 4 * kBytes, MREMAP_MAYMOVE));
    if (moved == MAP_FAILED || !holds(moved, "money")) return false;
    store(moved + kPageBytes, "more");
    return pawl_msync(moved, 4 * kBytes, MS_SYNC) == 0;
  });
  EXPECT_TRUE(holds(found.data(), "money"));
  EXPECT_TRUE(holds(found.data() + kPageBytes, "more"));
}

TEST_P(MemoryCalls, ARefusedMoveKeepsItsPlaceFromOtherThreads) {
  const std::string found = recovered_after([](char* mapped) {
    ::mmap(mapped + kBytes, kPageBytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    std::atomic<bool> is_over{false};
    std::atomic<bool> was_overwritten{false};
    // Takes what is free, and looks whether another wrote there.
    std::thread other([&] {
      std::array<char*, 6> mine{};
      for (std::size_t round = 0; !is_over; ++round) {
        char*& one = mine.at(round % mine.size());
        if (one != nullptr && *one != 'm') was_overwritten = true;
        if (one != nullptr) ::munmap(one, kBytes);
        one = static_cast<char*>(
            ::mmap(nullptr, kBytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        *one = 'm';
      }
    });
    bool is_kept = true;
    for (int round = 0; round < 200 && is_kept; ++round) {
      const std::string text = "money " + std::to_string(round);
      store(mapped, text.c_str());
      is_kept = ::mremap(mapped, kBytes, 2 * kBytes, 0) == MAP_FAILED && errno == ENOMEM &&
                holds(mapped, text.c_str());
    }
    is_over = true;
    other.join();
    return is_kept && !was_overwritten && commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "money 199"));
}

// A thread that was given the addresses in between had its own mapping taken for that one: msync()
// of it failed, and unmapping it closed the other.
TEST_P(MemoryCalls, AMovedMappingGaveItsPlaceAwayBeforeItWasKnownToHaveMoved) {
  recovered_after([](char* mapped) {
    const UnmapWatch watch(mapped, kBytes);
    ::mmap(mapped + kBytes, kPageBytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    auto* const moved = static_cast<char*>(::mremap(mapped, kBytes, 2 * kBytes, MREMAP_MAYMOVE));
    return moved != MAP_FAILED && moved != mapped && watch.saw_it_go_unknown() && commit(moved);
  });
}

TEST_P(MemoryCalls, AShrunkMappingGaveItsEndAwayBeforeItWasKnownToBeShorter) {
  recovered_after([](char* mapped) {
    const UnmapWatch watch(mapped + kPageBytes, kBytes - kPageBytes);
    return ::mremap(mapped, kBytes, kPageBytes, 0) == mapped && watch.saw_it_go_unknown() &&
           pawl_msync(mapped, kPageBytes, MS_SYNC) == 0;
  });
}

TEST_P(MemoryCalls, AMappingGrowsAndShrinksWhereItIs) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "money");
    const auto has_length = [&](std::size_t from, std::size_t to) {
      return ::mremap(mapped, from, to, 0) == mapped && holds(mapped, "money") &&
             ::msync(mapped, to, MS_SYNC) == 0;
    };
    if (!has_length(kBytes, kPageBytes)) return false;
    if (!fails_with(::msync(mapped + kPageBytes, kPageBytes, MS_SYNC), ENOMEM)) return false;
    return has_length(kPageBytes, kBytes);
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

TEST_P(MemoryCalls, TheCLibrarysMsyncCommits) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "money");
    if (::msync(mapped, kBytes, MS_SYNC) != 0) return false;
    store(mapped, "other");
    return ::msync(mapped, kBytes, MS_INVALIDATE) == 0 && holds(mapped, "money");
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

TEST_P(MemoryCalls, ALibraryThatIsBoundDeeplyCommitsToo) {
  const std::string found = recovered_after([](char* mapped) {
    const auto plugin =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("plugin.so");
    void* const opened = ::dlopen(plugin.c_str(), RTLD_NOW | RTLD_DEEPBIND);
    if (opened == nullptr) return false;
    const auto sync =
        reinterpret_cast<int (*)(void*, std::size_t)>(::dlsym(opened, "plugin_msync"));
    store(mapped, "money");
    return sync(mapped, kBytes) == 0;
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

TEST_P(MemoryCalls, AdviceToAProcessTakesNoStoresAway) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "money");
    iovec range{mapped, kBytes};
    const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    if (!fails_with(::process_madvise(self, &range, 1, MADV_DONTNEED, 0), EINVAL)) return false;
    return holds(mapped, "money") && commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

TEST_P(MemoryCalls, AdviceToAnotherProcessIsTheKernelsToJudge) {
  recovered_after([](char* mapped) {
    const pid_t other = ::fork();
    if (other == 0) {
      ::pause();
      ::_exit(0);
    }
    const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, other, 0));
    iovec range{mapped, kBytes};
    // What the kernel answers depends on its version: only its own answer is right.
    const auto by_kernel = ::syscall(SYS_process_madvise, descriptor, &range, 1, kCollapse, 0);
    const int error_number = errno;
    const auto answer = ::process_madvise(descriptor, &range, 1, kCollapse, 0);
    const bool is_same = answer == by_kernel && (answer >= 0 || errno == error_number);
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
    return is_same && std::strstr(pawl_last_error(), "process_madvise") == nullptr &&
           commit(mapped);
  });
}

// Pawl does not see the system calls themselves.
TEST_P(MemoryCalls, APartThatIsGoneIsNoticedByTheCommit) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "committed");
    if (!commit(mapped)) return false;
    store(mapped + kPageBytes, "money");
    if (::syscall(SYS_munmap, mapped + kPageBytes, kPageBytes) != 0) return false;
    store(mapped, "refused..");
    return fails_with(pawl_msync(mapped, kBytes, MS_SYNC), EFAULT);
  });
  EXPECT_TRUE(holds(found.data(), "committed"));
}

// The program died where the kernel answers EFAULT or EINVAL.
TEST_P(MemoryCalls, PointersWereReadBeforeTheKernelRefusedThem) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "money");
    void* const nowhere =
        ::mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto* const vectors = static_cast<const iovec*>(nowhere);
    const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    if (!fails_with(::process_madvise(self, vectors, 1, MADV_DONTNEED, 0), EFAULT)) return false;
    if (!fails_with(::process_madvise(self, vectors, std::size_t{1} << 20, MADV_DONTNEED, 0),
                    EINVAL))
      return false;
    // Of the count the kernel takes the low half.
    const iovec window{mapped, kBytes};
    if (!fails_with(::process_madvise(self, &window, (std::size_t{1} << 32) + 1, MADV_DONTNEED, 0),
                    EINVAL))
      return false;
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0 || ::write(pair[0], "xx", 2) != 2 ||
        ::write(pair[0], "xx", 2) != 2)
      return false;
    if (!fails_with(::readv(pair[1], vectors, 1), EFAULT)) return false;
    if (!fails_with(::recvmsg(pair[1], static_cast<msghdr*>(nowhere), 0), EFAULT)) return false;
    if (!fails_with(::recvmmsg(pair[1], static_cast<mmsghdr*>(nowhere), 1, MSG_DONTWAIT, nullptr),
                    EFAULT))
      return false;
    sockaddr_storage name{};
    if (!fails_with(::getsockname(pair[1], reinterpret_cast<sockaddr*>(&name),
                                  static_cast<socklen_t*>(nowhere)),
                    EFAULT))
      return false;
    return commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

TEST_P(MemoryCalls, AnAddressThatNobodyAskedForWasRead) {
  const std::string found = recovered_after([](char* mapped) {
    store(mapped, "money");
    const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const int calling = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un any{AF_UNIX, {}};
    sockaddr_un name{};
    socklen_t length = sizeof name;
    const auto* const bound = reinterpret_cast<sockaddr*>(&name);
    if (::bind(listening, reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family) != 0 ||
        ::listen(listening, 2) != 0 ||
        ::getsockname(listening, reinterpret_cast<sockaddr*>(&name), &length) != 0 ||
        ::connect(calling, bound, length) != 0 || ::write(calling, "xx", 2) != 2)
      return false;
    const int accepted = ::accept4(listening, nullptr, nullptr, 0);
    char received[2];
    if (accepted < 0 || ::recvfrom(accepted, received, 2, 0, nullptr, nullptr) != 2) return false;
    // Without a name, buffers, or a list of them.
    msghdr nothing{};
    return ::recvmsg(accepted, &nothing, MSG_DONTWAIT) <= 0 &&
           ::process_madvise(-1, nullptr, 0, MADV_DONTNEED, 0) == -1 && commit(mapped);
  });
  EXPECT_TRUE(holds(found.data(), "money"));
}

INSTANTIATE_TEST_SUITE_P(Trackers, MemoryCalls,
                         testing::Values(PAWL_TRACKER_AUTO, PAWL_TRACKER_FAULT, PAWL_TRACKER_STORE),
                         [](const testing::TestParamInfo<int>& tested) {
                           return tested.param == PAWL_TRACKER_AUTO    ? "automatic"
                                  : tested.param == PAWL_TRACKER_FAULT ? "fault"
                                                                       : "store";
                         });

// A program's own malloc() gives memory back with its lock held: what is asked then may neither
// wait nor allocate.
TEST(MemoryCallsBetweenMappings, AreTheKernelsAlone) {
  const test::TemporaryDirectory directory;
  constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  auto* const area = static_cast<char*>(::mmap(nullptr, 3 * kBytes, PROT_NONE, kReserved, -1, 0));
  ASSERT_NE(area, MAP_FAILED);
  for (const std::size_t at : {std::size_t{0}, 2 * kBytes}) {
    const std::string path = directory / std::to_string(at);
    test::write_file(path, std::string(kBytes, '.'));
    ASSERT_EQ(map_file(path, PAWL_TRACKER_AUTO, area + at, MAP_FIXED), area + at);
  }
  EXPECT_FALSE(open_mappings::may_have_windows_in(range_of(area + kBytes, kBytes)));
  EXPECT_TRUE(open_mappings::may_have_windows_in(range_of(area + kBytes, kBytes + 1)));
  EXPECT_EQ(pawl_munmap(area, kBytes), 0) << pawl_last_error();
  EXPECT_EQ(pawl_munmap(area + 2 * kBytes, kBytes), 0) << pawl_last_error();
}

// What the kernel did to the file where it was cut took locked pages away, and left markers.
constexpr std::size_t kCutFilePages = 2400;

enum class PageOfCut { is_a_hole, is_reserved, is_written };
enum class CutBy { the_commit, the_rollback, a_commit_too_large_to_wait };

void make_file_to_cut(const std::string& path, std::size_t page, PageOfCut kind) {
  test::write_file(path, std::string(page * kPageBytes, '.'));
  const auto bytes = static_cast<off_t>(kCutFilePages * kPageBytes);
  if (kind == PageOfCut::is_written) {
    test::write_file(path, std::string(static_cast<std::size_t>(bytes), '.'));
  } else {
    ASSERT_EQ(::truncate(path.c_str(), bytes), 0);
  }
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (kind == PageOfCut::is_reserved) {
    ASSERT_EQ(::fallocate(descriptor, 0, 0, bytes), 0);
  }
  ASSERT_EQ(::fsync(descriptor), 0);
  // What is read again may come in pages of the page cache that are larger than the processor's.
  ASSERT_EQ(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(descriptor);
  ASSERT_EQ(test::read_file(path).size(), static_cast<std::size_t>(bytes));
}

// The number of a step that failed, or 0.
int load_locked_pages_behind_a_cut(const std::string& path, CutBy cut_by, std::size_t cut_at,
                                   const std::function<int(const char* mapped)>& lock) {
  constexpr unsigned kSecondsMax = 20;
  constexpr std::size_t kFileBytes = kCutFilePages * kPageBytes;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  pawl_options options{};
  if (pawl_options_init(&options) != 0) return 1;
  options.tracker = PAWL_TRACKER_SCAN;
  options.apply = cut_by == CutBy::the_commit ? PAWL_APPLY_EAGER : PAWL_APPLY_ASYNC;
  auto* const mapped = static_cast<char*>(
      pawl_mmap_with(nullptr, kFileBytes, kReadWrite, MAP_ATOMIC, descriptor, 0, &options));
  if (mapped == MAP_FAILED) return 2;
  const std::size_t locked_pages = cut_at / kPageBytes + 1;
  const auto load_all = [&] {
    for (std::size_t page = 0; page < locked_pages; ++page)
      static_cast<void>(*static_cast<volatile char*>(mapped + page * kPageBytes));
  };
  load_all();
  store(mapped, "committed");
  if (pawl_msync(mapped, kFileBytes, MS_SYNC) != 0) return 3;
  if (lock(mapped) != 0) return 4;
  load_all();
  ::alarm(kSecondsMax);
  if (pawl_ftruncate(descriptor, static_cast<off_t>(cut_at)) != 0) return 5;
  if (pawl_ftruncate(descriptor, kFileBytes - 1) != 0) return 6;
  if (cut_by == CutBy::a_commit_too_large_to_wait) {
    for (std::size_t page = locked_pages; page < kCutFilePages; ++page)
      store(mapped + page * kPageBytes, "money");
  }
  if (pawl_msync(mapped, kFileBytes, MS_SYNC) != 0) return 7;
  if (cut_by == CutBy::the_rollback && pawl_msync(mapped, kFileBytes, MS_INVALIDATE) != 0) return 8;
  // Else what the kernel took away stays in the page cache, as long as it likes.
  if (::syncfs(descriptor) != 0 || ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) != 0)
    return 9;
  load_all();
  store(mapped + kPageBytes, "money");
  if (pawl_msync(mapped, kFileBytes, MS_SYNC) != 0) return 10;
  return holds(mapped, "committed") && holds(mapped + kPageBytes, "money") ? 0 : 11;
}

class MemoryCallsOnADisk : public testing::TestWithParam<const char*> {};

TEST_P(MemoryCallsOnADisk, ALoadOfALockedPageBehindACutNeverReturned) {
  if (!kWrapped) GTEST_SKIP() << "libc's calls on memory are the sanitizer's";
  const test::LoopFileSystem disk(GetParam(), std::uint64_t{320} << 20);
  if (!disk.is_mounted()) GTEST_SKIP() << "no loop device here, or no " << GetParam();
  constexpr std::size_t kCutPage = 100;
  constexpr std::size_t kLockedBytes = (kCutPage + 1) * kPageBytes;
  const std::function<int(const char*)> lock = [](const char* mapped) {
    return ::mlock(mapped, kLockedBytes);
  };
  const std::function<int(const char*)> lock_all = [](const char* /*mapped*/) {
    return ::mlockall(MCL_CURRENT | MCL_ONFAULT);
  };
  int number = 0;
  for (const auto kind : {PageOfCut::is_a_hole, PageOfCut::is_reserved, PageOfCut::is_written}) {
    for (const std::size_t cut_at : {kCutPage * kPageBytes, kCutPage * kPageBytes + 1500}) {
      for (const auto cut_by :
           {CutBy::the_commit, CutBy::the_rollback, CutBy::a_commit_too_large_to_wait}) {
        for (const auto* way : {&lock, &lock_all}) {
          SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + ", cut at " +
                       std::to_string(cut_at) + " by " + std::to_string(static_cast<int>(cut_by)) +
                       (way == &lock ? ", mlock" : ", mlockall"));
          const std::string path = disk / std::to_string(number++);
          make_file_to_cut(path, kCutPage, kind);
          const pid_t child = ::fork();
          if (child == 0) ::_exit(load_locked_pages_behind_a_cut(path, cut_by, cut_at, *way));
          int status = 0;
          EXPECT_EQ(::waitpid(child, &status, 0), child);
          EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
          EXPECT_EQ(WEXITSTATUS(status), 0);
          ::unlink(path.c_str());
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachFileSystem, MemoryCallsOnADisk,
                         testing::Values("xfs", "ext4", "btrfs"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(MemoryCallsOnAHeap, AreAdviceAndProtectionOnly) {
  if (!kWrapped) GTEST_SKIP() << "libc's calls on memory are the sanitizer's";
  const test::TemporaryDirectory directory;
  pawl_heap_options options{};
  ASSERT_EQ(pawl_heap_options_init(&options), 0);
  pawl_heap* const heap = pawl_heap_open((directory / "heap").c_str(), &options);
  ASSERT_NE(heap, nullptr) << pawl_last_error();
  auto* const text = static_cast<char*>(pawl_heap_malloc(heap, 64));
  ASSERT_NE(text, nullptr);
  pawl_heap_set_root(heap, text);
  store(text, "money");
  char* const page = text - reinterpret_cast<std::uintptr_t>(text) % kPageBytes;
  EXPECT_EQ(::madvise(page, kPageBytes, MADV_DONTNEED), 0);
  EXPECT_TRUE(holds(text, "money"));
  EXPECT_TRUE(fails_with(::munmap(page, kPageBytes), EINVAL));
  EXPECT_TRUE(fails_with(::msync(page, kPageBytes, MS_SYNC), EINVAL));
  EXPECT_EQ(::mmap(page, kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_TRUE(holds(text, "money"));
  EXPECT_EQ(pawl_heap_sync(heap), 0) << pawl_last_error();
  EXPECT_EQ(pawl_heap_close(heap), 0) << pawl_last_error();
  EXPECT_EQ(::munmap(page, kPageBytes), 0);
}

// The heap that was opened there was taken for the one that had only reserved the place.
TEST(MemoryCallsOnAHeap, GaveItsReserveAwayBeforeItWasKnownToEndThere) {
  if (!kWrapped) GTEST_SKIP() << "libc's calls on memory are the sanitizer's";
  const test::TemporaryDirectory directory;
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  constexpr std::uint64_t kAt = heap_format::kAddressMin + 256 * 1024 * kMebibyte;
  constexpr std::uint64_t kBehind = kAt + 64 * kMebibyte;
  const auto open_at = [&](const char* name, std::uint64_t address) {
    pawl_heap_options options{};
    pawl_heap_options_init(&options);
    options.address = address;
    options.size_bytes_max = 256 * kMebibyte;
    return pawl_heap_open((directory / name).c_str(), &options);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    pawl_heap* const behind = open_at("behind", kBehind);
    if (behind == nullptr || pawl_heap_close(behind) != 0) ::_exit(2);
    if (open_at("first", kAt) == nullptr) ::_exit(3);
    const UnmapWatch watch(reinterpret_cast<char*>(kBehind),  // NOLINT: an address
                           192 * kMebibyte);
    // Refused, because here the kernel takes nothing back.
    open_at("behind", 0);
    ::_exit(watch.saw_it_go_unknown() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

}  // namespace
}  // namespace pawl
