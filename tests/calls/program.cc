#include "calls/program.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "calls/model.h"
#include "pawl/pawl.h"
#include "pawl/store.h"

namespace pawl::test::calls {
namespace {

constexpr std::chrono::seconds kProgramTimeMax{20};
constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::size_t kWindowBytesMin = kParts * kPartBytes;
constexpr int kHighDescriptor = 500;  // numbers from here on are free
constexpr std::size_t kStoreBytesMax = 3000;

class Program {
 public:
  explicit Program(const Settings& settings) : settings_(settings) {}
  int run();

 private:
  using Random = std::mt19937;
  struct Area {
    std::size_t from = 0;  // in the part
    std::size_t bytes = 0;
  };
  // A thread's part, and its memory.
  struct Own {
    std::size_t number;
    Random random;
    std::array<char, kPartBytes> now;
    int other = -1;  // a file that is not mapped
  };

  static std::size_t below(Random& random, std::size_t bound) { return random() % bound; }
  [[noreturn]] void fail(const char* call, const char* what) const;
  void expect(bool holds, const char* call, const char* what) const {
    if (!holds) fail(call, what);
  }
  char* at(const Own& own, std::size_t offset = 0) const {
    return base_ + own.number * kPartBytes + offset;
  }
  off_t file_offset(const Own& own, std::size_t offset) const {
    return static_cast<off_t>(own.number * kPartBytes + offset);
  }
  Part& part(const Own& own) { return shared_->parts[own.number]; }
  static Area random_bytes(Own& own, std::size_t bytes_max);
  static Area random_pages(Own& own);
  void check(const Own& own, const char* call) const;

  bool open_and_map();
  void* map(void* address, std::size_t bytes, int flags) const;
  int sync(void* address, std::size_t bytes, int flags) const;
  void resize(std::uint64_t bytes);

  void work(Own& own);
  const char* call_shared(Own& own);
  const char* call_alone(Own& own);

  void store(Own& own);
  void kernel_stores(Own& own);
  void kernel_loads(Own& own);
  void protect(Own& own);
  void advise(Own& own);
  void advise_all(Own& own) const;
  void commit(Own& own, int flags);
  void roll_back(Own& own);
  void descriptors(Own& own) const;
  void short_thread(Own& own);
  void child(Own& own) const;
  void refused(Own& own) const;
  void write_to_file(Own& own);
  void punch(Own& own);

  void commit_whole(const char* call);
  void is_durable();
  void remap(Own& own);
  void map_again(Own& own);
  void resize_and_commit(Own& own);

  const Settings settings_;
  Shared* shared_ = nullptr;
  std::shared_mutex alone_;  // held by one thread for what concerns all
  char* base_ = nullptr;
  std::size_t window_bytes_ = kWindowBytesMin;
  int file_ = -1;
  int source_ = -1;
  std::vector<char> source_content_;
  std::array<Own, kThreads> own_;
  std::array<char, kPartBytes> tail_{};  // as the program sees it
  std::uint64_t tail_bytes_ = 0;
  std::chrono::steady_clock::time_point end_;
};

void Program::fail(const char* call, const char* what) const {
  const int error_number = errno;
  std::fprintf(stderr, "calls: %s: %s (errno %d: %s; pawl: %s)\n", call, what, error_number,
               std::strerror(error_number), pawl_last_error());
  std::fflush(stderr);
  std::abort();  // an exit would commit, under `pawl run`
}

Program::Area Program::random_bytes(Own& own, std::size_t bytes_max) {
  const std::size_t bytes = 1 + below(own.random, bytes_max);
  return {below(own.random, kPartBytes - bytes + 1), bytes};
}

Program::Area Program::random_pages(Own& own) {
  const std::size_t pages = 1 + below(own.random, kPartPages);
  return {below(own.random, kPartPages - pages + 1) * kPage, pages * kPage};
}

void Program::check(const Own& own, const char* call) const {
  if (std::memcmp(at(own), own.now.data(), kPartBytes) == 0) return;
  std::size_t page = 0;
  while (std::memcmp(at(own, page * kPage), own.now.data() + page * kPage, kPage) == 0) ++page;
  std::fprintf(stderr, "calls: part %zu, page %zu\n", own.number, page);
  fail(call, "memory is not what was stored");
}

void* Program::map(void* address, std::size_t bytes, int flags) const {
  if (settings_.by_library)
    return pawl_mmap(address, bytes, kReadWrite, MAP_ATOMIC | flags, file_, 0);
  return ::mmap(address, bytes, kReadWrite, MAP_SHARED | flags, file_, 0);
}

int Program::sync(void* address, std::size_t bytes, int flags) const {
  return settings_.by_library ? pawl_msync(address, bytes, flags) : ::msync(address, bytes, flags);
}

void Program::resize(std::uint64_t bytes) {
  const auto size = static_cast<off_t>(kTailOffset + bytes);
  const int resized = settings_.by_library ? pawl_ftruncate(file_, size) : ::ftruncate(file_, size);
  expect(resized == 0, "ftruncate", "failed");
  if (bytes < tail_bytes_) std::memset(tail_.data() + bytes, 0, tail_bytes_ - bytes);
  tail_bytes_ = bytes;
}

bool Program::open_and_map() {
  file_ = ::open(settings_.path.c_str(), O_RDWR | O_CREAT, 0644);
  if (file_ < 0) return false;
  void* const mapped = map(nullptr, window_bytes_, 0);
  if (mapped == MAP_FAILED) return false;
  base_ = static_cast<char*>(mapped);
  return true;
}

void Program::store(Own& own) {
  const Area area = random_bytes(own, kStoreBytesMax);
  const int byte = static_cast<int>(own.random());
  std::memset(own.now.data() + area.from, byte, area.bytes);
  std::memset(at(own, area.from), byte, area.bytes);
  pawl_stored(at(own, area.from), area.bytes);
}

void Program::kernel_stores(Own& own) {
  const Area area = random_bytes(own, 2 * kStoreBytesMax);
  const std::size_t from = below(own.random, source_content_.size() - area.bytes);
  const auto offset = static_cast<off_t>(from);
  char* const to = at(own, area.from);
  ssize_t got = -1;
  switch (below(own.random, 3)) {
    case 0:
      got = ::pread(source_, to, area.bytes, offset);
      break;
    case 1: {
      const std::size_t half = area.bytes / 2;
      const iovec vectors[] = {{to, half}, {to + half, area.bytes - half}};
      got = ::preadv(source_, vectors, 2, offset);
      break;
    }
    default:
      ::lseek(own.other, offset, SEEK_SET);
      ::pwrite(own.other, source_content_.data() + from, area.bytes, offset);
      got = ::read(own.other, to, area.bytes);
  }
  expect(got == static_cast<ssize_t>(area.bytes), "read", "is short");
  std::memcpy(own.now.data() + area.from, source_content_.data() + from, area.bytes);
}

void Program::kernel_loads(Own& own) {
  const Area area = random_bytes(own, kStoreBytesMax);
  std::vector<char> seen(area.bytes);
  const auto bytes = static_cast<ssize_t>(area.bytes);
  expect(::pwrite(own.other, at(own, area.from), area.bytes, 0) == bytes &&
             ::pread(own.other, seen.data(), area.bytes, 0) == bytes,
         "write", "is short");
  expect(std::memcmp(seen.data(), own.now.data() + area.from, area.bytes) == 0, "write",
         "wrote what was not stored");
}

void Program::protect(Own& own) {
  const Area area = random_pages(own);
  const int closed = below(own.random, 3) == 0 ? PROT_NONE : PROT_READ;
  expect(::mprotect(at(own, area.from), area.bytes, closed) == 0, "mprotect", "failed");
  if (below(own.random, 2) == 0) commit(own, MS_SYNC);
  const bool by_key = below(own.random, 4) == 0;
  expect((by_key ? ::pkey_mprotect(at(own), kPartBytes, kReadWrite, -1)
                 : ::mprotect(at(own), kPartBytes, kReadWrite)) == 0,
         "mprotect", "failed");
}

void Program::advise(Own& own) {
  const Area area = random_pages(own);
  // MADV_HWPOISON and what follows it are from 100 on.
  const int advice = static_cast<int>(below(own.random, 3) == 0 ? 100 + below(own.random, 5)
                                                                : below(own.random, 27));
  const int advised = ::madvise(at(own, area.from), area.bytes, advice);
  expect(advised == 0 || errno == EINVAL, "madvise", "failed");
  if (advised == 0 && advice == MADV_REMOVE) std::memset(own.now.data() + area.from, 0, area.bytes);
}

// Of memory that other threads use at the moment.
void Program::advise_all(Own& own) const {
  static constexpr std::array kAdvice = {MADV_DONTNEED, MADV_HUGEPAGE, MADV_WILLNEED, MADV_COLD,
                                         MADV_MERGEABLE};
  expect(::madvise(base_, kTailOffset, kAdvice[below(own.random, kAdvice.size())]) == 0, "madvise",
         "failed");
}

void Program::commit(Own& own, int flags) {
  Part& versions = part(own);
  if (versions.is_full()) flags = MS_SYNC;
  const Area area = below(own.random, 3) == 0 ? random_pages(own) : Area{0, kPartBytes};
  Version& next = versions.next();
  std::memcpy(next.content, versions.last().content, kPartBytes);
  std::memcpy(next.content + area.from, own.now.data() + area.from, area.bytes);
  next.bytes = kPartBytes;
  versions.asked_for();
  expect(sync(at(own, area.from), area.bytes, flags) == 0, "msync", "failed");
  if (flags != MS_SYNC) return;
  // What was queued before it is durable, too.
  versions.acknowledged();
  shared_->commits.fetch_add(1);
}

void Program::roll_back(Own& own) {
  if (!settings_.by_library) return;  // to the preload library MS_INVALIDATE is POSIX's
  const Area area = random_pages(own);
  expect(sync(at(own, area.from), area.bytes, MS_INVALIDATE) == 0, "msync(MS_INVALIDATE)",
         "failed");
  std::memcpy(own.now.data() + area.from, part(own).last().content + area.from, area.bytes);
}

// One descriptor of the file stays.
void Program::descriptors(Own& own) const {
  const int high = kHighDescriptor + 10 * static_cast<int>(own.number);
  const int copy = ::dup(file_);
  expect(copy >= 0, "dup", "failed");
  ::lseek(copy, static_cast<off_t>(below(own.random, kTailOffset)), SEEK_SET);
  if (below(own.random, 2) == 0) expect(::dup2(copy, high) == high, "dup2", "failed");
  expect(::close(copy) == 0, "close", "failed");
  const auto first = static_cast<unsigned>(high);
  // An old kernel has no such call.
  expect(::close_range(first, first + 9, 0) == 0 || errno == ENOSYS, "close_range", "failed");
}

void Program::short_thread(Own& own) {
  std::thread([&] { store(own); }).join();
}

// It may read its copy, and commits nothing.
void Program::child(Own& own) const {
  expect(::madvise(at(own), kPartBytes, MADV_DOFORK) == 0, "madvise", "failed");
  const pid_t process = ::fork();
  expect(process >= 0, "fork", "failed");
  if (process == 0) {
    int status = 0;
    if (std::memcmp(at(own), own.now.data(), kPartBytes) != 0) status = 1;
    at(own)[0] = 'c';
    if (sync(at(own), kPartBytes, MS_SYNC) == 0) status = 2;
    (void)::madvise(at(own), kPartBytes, MADV_RANDOM);
    ::_exit(status);
  }
  int status = 0;
  expect(::waitpid(process, &status, 0) == process && WIFEXITED(status), "fork",
         "the child did not end");
  expect(WEXITSTATUS(status) != 1, "fork", "the child has other memory than its parent");
  expect(WEXITSTATUS(status) != 2, "fork", "the child's commit was acknowledged");
}

void Program::refused(Own& own) const {
  char* const page = at(own, below(own.random, kPartPages) * kPage);
  constexpr int kFixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  switch (below(own.random, 4)) {
    case 0:
      return expect(::mmap(page, kPage, kReadWrite, kFixed, -1, 0) == MAP_FAILED, "mmap",
                    "covered a part");
    case 1:
      return expect(::mremap(page, kPage, 2 * kPage, MREMAP_MAYMOVE) == MAP_FAILED, "mremap",
                    "moved a part");
    case 2: {
      const int segment = ::shmget(IPC_PRIVATE, kPage, IPC_CREAT | 0600);
      const bool was_refused = ::shmat(segment, page, SHM_REMAP) == reinterpret_cast<void*>(-1);
      ::shmctl(segment, IPC_RMID, nullptr);
      return expect(segment >= 0 && was_refused, "shmat", "covered a part");
    }
    default:
      if (settings_.by_library) expect(::munmap(page, kPage) != 0, "munmap", "unmapped a part");
  }
}

// Through the descriptor, under `pawl run`.
void Program::write_to_file(Own& own) {
  if (settings_.by_library) return;
  const Area area = random_bytes(own, kStoreBytesMax);
  const std::size_t from = below(own.random, source_content_.size() - area.bytes);
  const char* const content = source_content_.data() + from;
  expect(::pwrite(file_, content, area.bytes, file_offset(own, area.from)) ==
             static_cast<ssize_t>(area.bytes),
         "pwrite", "is short");
  std::memcpy(own.now.data() + area.from, content, area.bytes);
  std::vector<char> seen(kPartBytes);
  expect(::pread(file_, seen.data(), kPartBytes, file_offset(own, 0)) == kPartBytes, "pread",
         "is short");
  expect(std::memcmp(seen.data(), own.now.data(), kPartBytes) == 0, "pread",
         "the file is not what was stored");
}

void Program::punch(Own& own) {
  if (settings_.by_library) return;
  const Area area = random_bytes(own, 2 * kPage);
  expect(::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, file_offset(own, area.from),
                     static_cast<off_t>(area.bytes)) == 0,
         "fallocate", "failed");
  std::memset(own.now.data() + area.from, 0, area.bytes);
}

const char* Program::call_shared(Own& own) {
  switch (below(own.random, 18)) {
    case 0:
    case 1:
    case 2:
      return store(own), "store";
    case 3:
    case 4:
      return kernel_stores(own), "read";
    case 5:
      return kernel_loads(own), "write";
    case 6:
      return protect(own), "mprotect";
    case 7:
    case 8:
      return advise(own), "madvise";
    case 9:
      return advise_all(own), "madvise of all";
    case 10:
      return commit(own, MS_ASYNC), "msync(MS_ASYNC)";
    case 11:
      return roll_back(own), "msync(MS_INVALIDATE)";
    case 12:
      return descriptors(own), "dup and close";
    case 13:
      return short_thread(own), "a thread that ends";
    case 14:
      return below(own.random, 4) == 0 ? (child(own), "fork") : (refused(own), "a refused call");
    case 15:
      return write_to_file(own), "pwrite";
    case 16:
      return punch(own), "fallocate";
    default:
      return commit(own, MS_SYNC), "msync";
  }
}

// All that was asked for, of all parts.
void Program::is_durable() {
  for (Part& each : shared_->parts) each.acknowledged();
  shared_->commits.fetch_add(1);
}

void Program::commit_whole(const char* call) {
  for (Own& own : own_) {
    Version& next = part(own).next();
    std::memcpy(next.content, own.now.data(), kPartBytes);
    next.bytes = kPartBytes;
    part(own).asked_for();
  }
  Version& next = shared_->parts[kTail].next();
  std::memcpy(next.content, tail_.data(), kPartBytes);
  next.bytes = tail_bytes_;
  shared_->parts[kTail].asked_for();
  const bool by_descriptor = !settings_.by_library && below(own_[0].random, 2) == 0;
  expect((by_descriptor ? ::fsync(file_) : sync(base_, window_bytes_, MS_SYNC)) == 0, call,
         "a commit of the whole failed");
  is_durable();
}

void Program::remap(Own& own) {
  const std::size_t bytes = kWindowBytesMin + below(own.random, 3) * kPartBytes;
  void* moved = nullptr;
  if (below(own.random, 2) == 0) {
    moved = ::mremap(base_, window_bytes_, bytes, MREMAP_MAYMOVE);
    expect(moved != MAP_FAILED, "mremap", "failed");
  } else {
    void* const place =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    expect(place != MAP_FAILED, "mmap", "failed");
    moved = ::mremap(base_, window_bytes_, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (moved == MAP_FAILED) {
      // The tracker `store` takes mappings in one region only.
      expect(errno == EINVAL, "mremap(MREMAP_FIXED)", "failed");
      ::munmap(place, bytes);
      return;
    }
  }
  base_ = static_cast<char*>(moved);
  window_bytes_ = bytes;
}

void Program::map_again(Own& own) {
  switch (below(own.random, 3)) {
    case 0:
      expect((settings_.by_library ? pawl_munmap(base_, window_bytes_)
                                   : ::munmap(base_, window_bytes_)) == 0,
             "munmap", "failed");
      break;
    case 1:
      expect(::munmap(base_, window_bytes_) == 0, "munmap", "failed");
      break;
    default:
      expect(::mmap(base_, window_bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0) == base_,
             "mmap(MAP_FIXED)", "did not cover the whole");
      expect(base_[0] == 0 && ::munmap(base_, window_bytes_) == 0, "mmap(MAP_FIXED)",
             "shows the file");
  }
  if (settings_.by_library) {
    // What was not committed is discarded.
    is_durable();
    for (Own& each : own_) std::memcpy(each.now.data(), part(each).last().content, kPartBytes);
    const Version& tail = shared_->parts[kTail].last();
    std::memcpy(tail_.data(), tail.content, kPartBytes);
    tail_bytes_ = tail.bytes;
  }
  void* const mapped = map(nullptr, window_bytes_, 0);
  expect(mapped != MAP_FAILED, "mmap", "failed");
  base_ = static_cast<char*>(mapped);
}

void Program::resize_and_commit(Own& own) {
  resize(below(own.random, kPartBytes + 1));
  if (tail_bytes_ != 0) {
    const std::size_t bytes = 1 + below(own.random, tail_bytes_);
    const int byte = static_cast<int>(own.random());
    std::memset(tail_.data(), byte, bytes);
    std::memset(base_ + kTailOffset, byte, bytes);
    pawl_stored(base_ + kTailOffset, bytes);
    (void)::madvise(base_ + kTailOffset, bytes, static_cast<int>(below(own.random, 9)));
  }
  commit_whole("ftruncate");
}

// Calls that concern the memory of all threads.
const char* Program::call_alone(Own& own) {
  switch (below(own.random, 5)) {
    case 0:
      return remap(own), "mremap";
    case 1:
      return map_again(own), "munmap and mmap";
    case 2:
      return commit_whole("msync"), "msync of all";
    case 3:
      expect(::close(file_) == 0, "close", "failed");
      file_ = ::open(settings_.path.c_str(), O_RDWR);
      return expect(file_ >= 0, "open", "failed"), "close and open";
    default:
      return resize_and_commit(own), "ftruncate";
  }
}

void Program::work(Own& own) {
  while (std::chrono::steady_clock::now() < end_) {
    shared_->calls.fetch_add(1);
    if (below(own.random, 40) != 0) {
      const std::shared_lock lock(alone_);
      check(own, call_shared(own));
      continue;
    }
    const std::unique_lock lock(alone_);
    const char* const call = call_alone(own);
    for (const Own& each : own_) check(each, call);
    expect(std::memcmp(base_ + kTailOffset, tail_.data(), tail_bytes_) == 0, call,
           "the tail is not what was stored");
  }
}

int Program::run() {
  void* const shared =
      ::mmap(nullptr, sizeof(Shared), kReadWrite, MAP_SHARED, settings_.shared_descriptor, 0);
  if (shared == MAP_FAILED) return 2;
  shared_ = static_cast<Shared*>(shared);
  end_ = std::chrono::steady_clock::now() + kProgramTimeMax;
  std::seed_seq seeds{settings_.seed};
  std::array<std::uint32_t, kThreads + 1> numbers{};
  seeds.generate(numbers.begin(), numbers.end());
  Random random(numbers[kThreads]);
  source_content_.resize(std::size_t{1} << 16);
  for (char& byte : source_content_) byte = static_cast<char>(random());
  const std::string source = settings_.path + ".source";
  source_ = ::open(source.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  const auto bytes = static_cast<ssize_t>(source_content_.size());
  if (source_ < 0 || ::write(source_, source_content_.data(), source_content_.size()) != bytes)
    return 2;
  if (!open_and_map()) fail("mmap", "failed");
  resize(0);
  for (std::size_t number = 0; number < kThreads; ++number) {
    Own& own = own_[number];
    own.number = number;
    own.random.seed(numbers[number]);
    own.now.fill(0);
    const std::string other = settings_.path + ".other" + std::to_string(number);
    own.other = ::open(other.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (own.other < 0) return 2;
  }
  commit_whole("msync");
  shared_->is_ready.store(true);
  std::vector<std::thread> threads;
  for (Own& own : own_) threads.emplace_back([&] { work(own); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace

int run_program(const Settings& settings) { return std::make_unique<Program>(settings)->run(); }

}  // namespace pawl::test::calls
