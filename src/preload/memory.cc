// mmap and its kin: which mappings become Pawl's, and what can be done with them.
#include "preload/interpose.h"

#include <sys/shm.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <mutex>
#include <string>
#include <thread>

#include "mapping/memory_calls.h"
#include "medium/memory_functions.h"
#include "medium/sections_file.h"
#include "pawl/pawl.h"
#include "preload/asynchronous.h"
#include "preload/group.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/other_writers.h"
#include "preload/own_descriptors.h"
#include "preload/patterns.h"
#include "preload/pieces.h"
#include "preload/real.h"
#include "preload/unmatched.h"

namespace pawl::preload {
namespace {

constexpr std::size_t kSnapshotBytesMax = std::size_t{1} << 30;
constexpr int kStartAttemptsMax = 100;
constexpr AddressRange kEverything{0, ~std::uintptr_t{0}};

// A language that collects its garbage unmaps a window some time after the program gave it up, in a
// thread of its own, and the program may map the file again before that.
constexpr std::chrono::milliseconds kWindowGoesMax{100};
constexpr std::chrono::milliseconds kWindowLookPause{1};
// A program that asks for a second mapping again and again is not slowed down each time.
constexpr std::chrono::milliseconds kPauseAfterVainWait{1000};

#ifndef MADV_POPULATE_READ
constexpr int kPopulateRead = 22;
#else
constexpr int kPopulateRead = MADV_POPULATE_READ;
#endif

struct MapRequest {
  void* address;
  std::size_t length;
  int protection;
  int flags;
  int descriptor;
  off_t offset;

  bool asks_for_pawl() const { return (flags & MAP_ATOMIC) == MAP_ATOMIC; }
  int sharing() const { return flags & MAP_TYPE; }
};

// What MAP_SHARED_VALIDATE takes on every file, as in Linux's LEGACY_MAP_MASK.
constexpr int kMapHugeSizes = (21 << MAP_HUGE_SHIFT) | (30 << MAP_HUGE_SHIFT);  // 2 MiB, 1 GiB
constexpr int kMapFlagsOfAllFiles = MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | MAP_DENYWRITE |
                                    MAP_EXECUTABLE | MAP_GROWSDOWN | MAP_LOCKED | MAP_NORESERVE |
                                    MAP_POPULATE | MAP_NONBLOCK | MAP_STACK | MAP_HUGETLB |
                                    MAP_32BIT | kMapHugeSizes;

// A program asks by MAP_SHARED_VALIDATE to be refused what the mapping cannot do.  Above all that
// is MAP_SYNC: a program that believes its stores durable once its caches are flushed commits
// nothing, and the working view is ordinary memory whatever the file stands on.
Status check_validated_flags(const MapRequest& request) {
  if (request.sharing() != MAP_SHARED_VALIDATE) return {};
  constexpr int kForPawl = MAP_ATOMIC | MAP_FIXED_NOREPLACE;
  const int known = kMapFlagsOfAllFiles | (request.asks_for_pawl() ? kForPawl : 0);
  if ((request.flags & ~known) == 0) return {};
  if ((request.flags & MAP_SYNC) != 0) {
    return Status::failure(EOPNOTSUPP,
                           "an atomic mapping does not support MAP_SYNC: its stores are durable "
                           "when msync() returns. A program that then maps the file without "
                           "MAP_SYNC, as libpmem does, goes on; change others to do so");
  }
  return Status::failure(EOPNOTSUPP,
                         "MAP_SHARED_VALIDATE with an unknown flag; map the file "
                         "without it");
}

void* pass_on(const MapRequest& request) {
  return memory_calls::map(request.address, request.length, request.protection, request.flags,
                           request.descriptor, request.offset);
}

void* refuse_map(const Status& failure, const char* call = "mmap") {
  refuse(call, failure);
  return MAP_FAILED;
}

// libpmem tries MAP_SYNC first, each time that it maps: once is enough.
void* refuse_flags(const MapRequest& request, const Status& failure) {
  static std::atomic<bool> has_said_of_map_sync{false};
  if ((request.flags & MAP_SYNC) == 0 || !has_said_of_map_sync.exchange(true))
    return refuse_map(failure);
  errno = failure.error_number();
  return MAP_FAILED;
}

// What is beneath may still be the kernel's business alone; this says so without a system call in
// nearly all cases.
bool is_of_no_concern(const MapRequest& request) {
  if (request.asks_for_pawl()) return false;
  if ((request.flags & MAP_ANONYMOUS) != 0 || request.descriptor < 0) return true;
  if (request.sharing() == MAP_PRIVATE)
    return table::is_empty() && !may_have_other_writer(request.descriptor);
  return table::is_empty() && !has_patterns();
}

// MAP_PRIVATE of a tracked file: what the program sees now, as a copy.  Whether later changes of
// the file show through a private mapping is unspecified, so a copy is a private mapping.
void* map_snapshot(const MapRequest& request, const Held& file) {
  if (!file || file->mapping == nullptr) return pass_on(request);
  if (request.length > kSnapshotBytesMax) {
    return refuse_map(Status::failure(
        ENOMEM, "a private mapping of " + file->path + ", which is mapped atomically, is a copy, " +
                    "and of more than 1 GiB none is made; map it in pieces"));
  }
  if (request.offset < 0 || static_cast<std::uint64_t>(request.offset) % kPageBytes != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  const int placement = request.flags & ~(MAP_TYPE | MAP_POPULATE | MAP_LOCKED);
  void* const address = memory::map(request.address, request.length, PROT_READ | PROT_WRITE,
                                    placement | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return MAP_FAILED;
  const auto got = file->mapping->read(static_cast<std::uint64_t>(request.offset),
                                       {static_cast<std::byte*>(address), request.length});
  if (!got.ok()) {
    memory::unmap(address, request.length);
    return refuse_map(got.status());
  }
  memory::protect(address, request.length, request.protection);
  return address;
}

// A commit reads what it commits.  A part of a window that the program cannot read is one that Pawl
// could not commit either, so PROT_READ always stays.
int readable(int protection) { return protection | PROT_READ; }

void* map_window(const MapRequest& request, const TrackedFilePointer& file) {
  if (const Status ours = check_ours(*file); !ours.ok()) return refuse_map(ours);
  const AddressRange present = table::window_of(*file);
  if (!present.empty()) {
    return refuse_map(Status::failure(
        EBUSY, file->path + " is mapped atomically already, and has one such mapping at a time; "
                            "unmap that one first, or use mremap()"));
  }
  Result<char*> mapped = Status::failure(EIO, "not mapped");
  keep_what_appears([&] {
    mapped = file->mapping->map_window(request.address, length(range_of(nullptr, request.length)),
                                       readable(request.protection),
                                       request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE),
                                       static_cast<std::uint64_t>(request.offset));
  });
  if (!mapped.ok()) return refuse_map(mapped.status());
  if (request.asks_for_pawl()) file->asked_for_by_name = false;
  table::set_window(*file, range_of(mapped.value(), request.length));
  // Both are wishes about speed; a mapping without them is a mapping.
  if ((request.flags & MAP_POPULATE) != 0)
    real().madvise(mapped.value(), request.length, kPopulateRead);
  if ((request.flags & MAP_LOCKED) != 0)
    (void)file->mapping->lock_memory(mapped.value(), request.length, 0);
  return mapped.value();
}

// Without the file's lock, for another thread takes the window away.
void wait_for_window_to_go(TrackedFile& file) {
  using Clock = std::chrono::steady_clock;
  if (table::window_of(file).empty() || !program_has_other_threads()) return;
  const auto begin = Clock::now();
  if (begin < Clock::time_point(Clock::duration(file.waits_again.load()))) return;
  while (!table::window_of(file).empty()) {
    const auto now = Clock::now();
    if (now >= begin + kWindowGoesMax) {
      file.waits_again.store((now + kPauseAfterVainWait).time_since_epoch().count());
      return;
    }
    std::this_thread::sleep_for(kWindowLookPause);
  }
}

void* map_atomically(const MapRequest& request, const struct stat& status) {
  if (const Status valid = check_validated_flags(request); !valid.ok())
    return refuse_flags(request, valid);
  if (request.length == 0 || request.offset < 0 ||
      static_cast<std::uint64_t>(request.offset) % kPageBytes != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  const bool is_fixed = (request.flags & MAP_FIXED) != 0;
  const AddressRange replaced =
      is_fixed ? range_of(request.address, request.length) : AddressRange{};
  for (int attempt = 0; attempt < kStartAttemptsMax; ++attempt) {
    const auto started = start(request.descriptor, status, !request.asks_for_pawl(), replaced);
    if (!started.ok()) return refuse_map(started.status());
    wait_for_window_to_go(*started.value());
    if (const Held held = hold_file(started.value())) return map_window(request, held.file);
  }
  return refuse_map(
      Status::failure(EBUSY, "the file is opened and closed by another thread all the time"));
}

void* map_file(const MapRequest& request) {
  struct stat status{};
  if (real().fstat(request.descriptor, &status) != 0) return MAP_FAILED;
  if (!S_ISREG(status.st_mode)) {
    if (!request.asks_for_pawl()) return pass_on(request);
    return refuse_map(Status::failure(ENODEV, "MAP_ATOMIC is for regular files"));
  }
  if (request.sharing() == MAP_PRIVATE) {
    if (refuse_before_reading("mmap", request.descriptor) != 0) return MAP_FAILED;
    return map_snapshot(request, hold_inode(status.st_dev, status.st_ino));
  }
  // The kernel refuses what is neither shared nor private.
  if (request.sharing() != MAP_SHARED && request.sharing() != MAP_SHARED_VALIDATE)
    return pass_on(request);

  const int flags = real().fcntl(request.descriptor, F_GETFL);
  const bool read_write = flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) == O_RDWR;
  if (request.asks_for_pawl() && !read_write) {
    return refuse_map(Status::failure(
        EACCES, "MAP_ATOMIC needs a descriptor that is open for reading and writing (O_RDWR)"));
  }
  // Made by libpawl, or as libpawl makes it: it has no journal, and needs none.
  if (!request.asks_for_pawl() && has_sections(request.descriptor)) {
    note_matched({});
    return pass_on(request);
  }
  // Waits for another thread that closes it: then it is a file like any other.
  const auto is_tracked_here = [&] {
    const Held held = hold_inode(status.st_dev, status.st_ino);
    return held && !held->is_of_other_memory();
  };
  const bool is_tracked = is_tracked_here();
  if (is_tracked && read_write) return map_atomically(request, status);
  if (is_tracked) {
    const auto path = path_of_descriptor(request.descriptor);
    return refuse_map(Status::failure(
        EBUSY, (path.ok() ? path.value() : "the file") +
                   " is mapped atomically, and has one mapping at a time; read it through that "
                   "one, or with pread()"));
  }
  if (!request.asks_for_pawl()) {
    // A file without a name does not survive a crash: there is nothing to keep.
    const auto pass_on_alone = [&] {
      const Status alone = read_write ? check_may_map(request.descriptor, status)
                                      : check_no_other_writer(request.descriptor);
      return alone.ok() ? pass_on(request) : refuse_map(alone);
    };
    if (!read_write || status.st_nlink == 0 || !has_patterns()) return pass_on_alone();
    const auto path = path_of_descriptor(request.descriptor);
    if (!path.ok()) {
      return refuse_map(path.status().with_text(
          path.status().text() + "; a glob may match it, so it is not mapped without Pawl"));
    }
    if (!matches_a_pattern(path.value())) {
      if ((request.protection & PROT_WRITE) != 0) note_unmatched(path.value());
      return pass_on_alone();
    }
    note_matched(path.value());
  } else {
    note_matched({});
  }
  return map_atomically(request, status);
}

// Calls in_kernel(range) or in_window(file, range), under the file's lock, for each piece of the
// range, until one answers other than 0.
template <class InKernel, class InWindow>
int for_pieces(const AddressRange& range, const InKernel& in_kernel, const InWindow& in_window) {
  for (const Piece& piece : pieces_of(range)) {
    int outcome = 0;
    if (piece.file == nullptr || is_suspended_here(*piece.file)) {
      outcome = in_kernel(piece.range);
    } else if (const Held held = hold_file(piece.file)) {
      outcome = in_window(held, piece.range);
    } else {  // it ended meanwhile, and is not found again
      outcome = for_pieces(piece.range, in_kernel, in_window);
    }
    if (outcome != 0) return outcome;
  }
  return 0;
}

int unmap(void* address, std::size_t count) {
  const Inside working;
  if (reinterpret_cast<std::uintptr_t>(address) % kPageBytes != 0 || count == 0) {
    errno = EINVAL;
    return -1;
  }
  return for_pieces(
      range_of(address, count),
      [](const AddressRange& part) { return memory_calls::unmap(pointer(part.low), length(part)); },
      [](const Held& file, const AddressRange& part) {
        const Status status = unmap_part(file.file, part);
        return status.ok() ? 0 : refuse("munmap", status);
      });
}

Status synchronise_piece(TrackedFile& file, const AddressRange& range, int flags) {
  PAWL_TRY(check_ours(file));
  const AddressRange part = table::window_of(file).intersect(range);
  if (part.empty()) return {};
  char* const address = pointer(part.low);
  if (!file.asked_for_by_name) {
    if (flags == (MS_SYNC | MS_INVALIDATE)) {
      return Status::failure(EINVAL,
                             "MS_SYNC and MS_INVALIDATE together ask to commit and to roll back");
    }
    if (flags == MS_INVALIDATE) return file.mapping->roll_back(address, length(part));
  } else if (flags == MS_INVALIDATE) {
    // POSIX: other copies shall see this one; Linux: nothing to do.
    return {};
  }
  const bool must_wait = (flags & MS_SYNC) != 0 || (file.asked_for_by_name && ms_async_waits());
  if (must_wait) return commit_range(file, address, length(part));
  return commit_range_async(file, address, length(part));
}

// What is wrong with the arguments of msync(), with Pawl as without; null: nothing.
const char* fault_of_synchronising(const void* address, int flags) {
  constexpr int kBoth = MS_SYNC | MS_ASYNC;
  if (reinterpret_cast<std::uintptr_t>(address) % kPageBytes != 0)
    return "its address is not on a page boundary; pass a multiple of the page size";
  if ((flags & ~(kBoth | MS_INVALIDATE)) != 0) return "its flags are unknown; pass MS_SYNC";
  if ((flags & kBoth) == kBoth) return "MS_SYNC and MS_ASYNC exclude each other; pass MS_SYNC";
  return nullptr;
}

// Many a program does not look at what msync() answers, and takes for saved what is not.
void say_invalid(const AddressRange& range, const char* fault) {
  for (const TrackedFilePointer& file : table::with_windows_in(range)) {
    if (file->has_said_invalid.exchange(true)) continue;
    std::string path;
    {
      const std::lock_guard<std::mutex> lock(file->lock);
      path = file->path;
    }
    say("msync", "a call for " + path + " fails (EINVAL) and commits nothing: " + fault +
                     ". Later calls like it are not reported");
  }
}

int synchronise(void* address, std::size_t count, int flags) {
  const Inside working;
  if (const char* const fault = fault_of_synchronising(address, flags); fault != nullptr) {
    say_invalid(range_of(address, count), fault);
    errno = EINVAL;
    return -1;
  }
  if (count == 0) return 0;
  return for_pieces(
      range_of(address, count),
      [&](const AddressRange& part) {
        return memory_calls::synchronise(pointer(part.low), length(part), flags);
      },
      [&](const Held& file, const AddressRange& part) {
        const Status status = synchronise_piece(*file, part, flags);
        return status.ok() ? 0 : refuse("msync", status);
      });
}

bool touches_a_hole(const TrackedFile& file, const AddressRange& range) {
  for (const AddressRange& hole : file.holes) {
    if (!hole.intersect(range).empty()) return true;
  }
  return false;
}

// Of windows and of what lies between them.  A lost file's memory is the kernel's, and so is a
// copy.
template <class InKernel, class InMapping>
int for_memory(const AddressRange& range, const InKernel& in_kernel, const InMapping& in_mapping) {
  return for_pieces(range, in_kernel, [&](const Held& file, const AddressRange& piece) {
    const AddressRange part = table::window_of(*file).intersect(piece);
    if (part.empty()) return 0;
    const bool is_kernels = file->mapping == nullptr || file->is_of_other_memory();
    return is_kernels ? in_kernel(part) : in_mapping(*file, part);
  });
}

int protect(void* address, std::size_t count, int protection) {
  const Inside working;
  if (reinterpret_cast<std::uintptr_t>(address) % kPageBytes != 0) {
    errno = EINVAL;
    return -1;
  }
  return for_memory(
      range_of(address, count),
      [&](const AddressRange& part) {
        return memory_calls::protect(pointer(part.low), length(part), protection);
      },
      [&](const TrackedFile& file, const AddressRange& part) {
        if (touches_a_hole(file, part)) {
          errno = ENOMEM;
          return -1;
        }
        const Status status =
            file.mapping->protect_window(pointer(part.low), length(part), readable(protection));
        return status.ok() ? 0 : refuse("mprotect", status);
      });
}

int advise(void* address, std::size_t count, int advice) {
  const Inside working;
  if (reinterpret_cast<std::uintptr_t>(address) % kPageBytes != 0) {
    errno = EINVAL;
    return -1;
  }
  return for_memory(
      range_of(address, count),
      [&](const AddressRange& part) {
        return memory_calls::advise(pointer(part.low), length(part), advice);
      },
      [&](const TrackedFile& file, const AddressRange& part) {
        const Status status = file.mapping->advise(pointer(part.low), length(part), advice);
        return status.ok() ? 0 : refuse("madvise", status);
      });
}

int lock(const void* address, std::size_t count, unsigned flags) {
  const Inside working;
  return for_memory(
      range_of(address, count),
      [&](const AddressRange& part) {
        return memory_calls::lock(pointer(part.low), length(part), flags);
      },
      [&](const TrackedFile& file, const AddressRange& part) {
        const Status status = file.mapping->lock_memory(pointer(part.low), length(part), flags);
        return status.ok() ? 0 : refuse("mlock", status);
      });
}

void ready_for_lock(bool read_in) {
  (void)for_memory(
      kEverything, [](const AddressRange& /*part*/) { return 0; },
      [&](const TrackedFile& file, const AddressRange& part) {
        memory_calls::ready_for_lock(*file.mapping, part, read_in);
        return 0;
      });
}

int lock_all(int flags) {
  const Inside working;
  return memory_calls::lock_all(flags, ready_for_lock);
}

// Locked.
Status check_movable(const TrackedFile& file, const AddressRange& range, std::size_t new_size,
                     int flags, const AddressRange& target) {
  PAWL_TRY(check_ours(file));
  const AddressRange window = table::window_of(file);
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  if (window.low != range.low || window.high != range.high || !file.holes.empty() ||
      (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0 || new_size == 0 ||
      (is_fixed && (flags & MREMAP_MAYMOVE) == 0)) {
    return Status::failure(
        EINVAL, "the atomic mapping of " + file.path + " can be moved and resized only as a whole");
  }
  if (!is_fixed) return {};
  if (!target.intersect(range).empty())
    return Status::failure(EINVAL, "the old and the new place of a mapping overlap");
  // To the length that it has: says whether it can be moved, and changes nothing.
  memory::LeftPlace nothing;
  return file.mapping->remap_window(length(window), false, nullptr, nothing).status();
}

void* remap(void* old_address, std::size_t old_size, std::size_t new_size, int flags,
            void* new_address);

void* remap_window(void* old_address, std::size_t old_size, std::size_t new_size, int flags,
                   void* new_address) {
  const AddressRange old_range = range_of(old_address, old_size);
  const auto pieces = pieces_of(old_range);
  const TrackedFilePointer file = pieces.empty() ? nullptr : pieces.front().file;
  if (file == nullptr || pieces.size() != 1) {
    return refuse_map(
        Status::failure(EINVAL, "an atomic mapping and its neighbours cannot be moved at once"),
        "mremap");
  }
  if (is_suspended_here(*file))
    return memory_calls::remap(old_address, old_size, new_size, flags, new_address);
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  const AddressRange target = is_fixed ? range_of(new_address, new_size) : AddressRange{};
  if (is_fixed && target.start() != new_address)
    return refuse_map(Status::failure(EINVAL, "the new address is not a multiple of the page size"),
                      "mremap");
  if (is_fixed) {
    Held checked = hold_file(file);
    if (!checked) return remap(old_address, old_size, new_size, flags, new_address);
    Status status = check_movable(*file, old_range, new_size, flags, target);
    checked.lock.unlock();  // no thread holds two of these locks
    if (status.ok()) status = memory_calls::check_way(target);
    if (status.ok()) status = memory_calls::make_way(target);
    if (!status.ok()) return refuse_map(status, "mremap");
  }
  const Held held = hold_file(file);
  if (!held) return remap(old_address, old_size, new_size, flags, new_address);
  Status status = check_movable(*file, old_range, new_size, flags, target);
  if (status.ok()) {
    memory::LeftPlace left;
    const auto moved =
        file->mapping->remap_window(range_of(nullptr, new_size).high, (flags & MREMAP_MAYMOVE) != 0,
                                    is_fixed ? new_address : nullptr, left);
    if (moved.ok()) {
      table::set_window(*file, range_of(moved.value(), new_size));
      return moved.value();
    }
    status = moved.status();
  }
  if (is_fixed) memory_calls::leave_nothing(target);
  return refuse_map(status, "mremap");
}

void* remap(void* old_address, std::size_t old_size, std::size_t new_size, int flags,
            void* new_address) {
  const AddressRange old_range = range_of(old_address, old_size == 0 ? 1 : old_size);
  const AddressRange new_range = range_of(new_address, new_size);
  const bool onto = (flags & MREMAP_FIXED) != 0 && table::may_have_windows_in(new_range);
  const bool from =
      table::may_have_windows_in(old_range) && !table::with_windows_in(old_range).empty();
  if (!from && !onto)
    return memory_calls::remap(old_address, old_size, new_size, flags, new_address);
  const Inside working;
  if (!from) return memory_calls::remap_over(old_address, old_size, new_size, flags, new_address);
  return remap_window(old_address, old_size, new_size, flags, new_address);
}

void* map_new(const MapRequest& request) {
  if (is_of_no_concern(request)) return pass_on(request);
  if ((request.flags & MAP_ANONYMOUS) != 0 || request.descriptor < 0)
    return refuse_map(Status::failure(EINVAL, "MAP_ATOMIC needs a file"));
  return map_file(request);
}

// A file's one mapping, where it is already or overlapping that.
bool replaces_its_own(const MapRequest& request, const AddressRange& range) {
  struct stat status{};
  if ((request.flags & MAP_ANONYMOUS) != 0 || request.sharing() == MAP_PRIVATE ||
      real().fstat(request.descriptor, &status) != 0)
    return false;
  const auto file = table::of_inode(status.st_dev, status.st_ino);
  return file != nullptr && !file->is_of_other_memory() &&
         !table::window_of(*file).intersect(range).empty();
}

// Over windows.  The new mapping is made elsewhere first: what is refused leaves them as they are.
void* map_over(const MapRequest& request, const AddressRange& range) {
  if (request.address != range.start() || range.empty()) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  if (const Status status = memory_calls::check_way(range); !status.ok()) return refuse_map(status);
  if (replaces_its_own(request, range)) {
    if (const Status valid = check_validated_flags(request); !valid.ok())
      return refuse_flags(request, valid);
    if (const Status status = make_way(range); !status.ok()) return refuse_map(status);
    void* const mapped = map_new(request);
    if (mapped == MAP_FAILED && table::with_windows_in(range).empty())
      memory_calls::leave_nothing(range);
    return mapped;
  }
  MapRequest elsewhere = request;
  elsewhere.address = nullptr;
  elsewhere.flags &= ~MAP_FIXED;
  void* const ready = map_new(elsewhere);
  if (ready == MAP_FAILED) return MAP_FAILED;
  void* const moved =
      remap(ready, range.bytes(), range.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, request.address);
  if (moved == MAP_FAILED) {
    const int error_number = errno;
    unmap(ready, range.bytes());
    errno = error_number;
  }
  return moved;
}

void* map(const MapRequest& request) {
  const AddressRange range = range_of(request.address, request.length);
  const bool replaces = (request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED;
  const bool is_in_the_way = replaces && table::may_have_windows_in(range);
  if (!is_in_the_way && is_of_no_concern(request)) return pass_on(request);
  const Inside working;
  if (is_in_the_way && !table::with_windows_in(range).empty()) return map_over(request, range);
  return map_new(request);
}

bool has_windows_in(const void* address, std::size_t count) {
  const AddressRange range = range_of(address, count);
  return table::may_have_windows_in(range) && !inside();
}

}  // namespace

PAWL_INTERPOSE void* mmap(void* address, size_t count, int protection, int flags, int descriptor,
                          off_t offset) noexcept try {
  PAWL_KEEP_ERRNO();
  const MapRequest request{address, count, protection, flags, descriptor, offset};
  PAWL_RETURN(PAWL_CALLED_BY_US() ? pass_on(request) : map(request));
}
PAWL_OR_NO_MEMORY

PAWL_ALSO_KNOWN_AS(mmap64, mmap);

PAWL_INTERPOSE int munmap(void* address, size_t count) noexcept try {
  PAWL_PASS(real().munmap(address, count));
  PAWL_RETURN(has_windows_in(address, count) ? unmap(address, count)
                                             : memory_calls::unmap(address, count));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int msync(void* address, size_t count, int flags) try {
  PAWL_PASS_OR_REFUSE("msync", table::may_have_windows_in(range_of(address, count)),
                      real().msync(address, count, flags));
  pthread_testcancel();
  PAWL_RETURN(has_windows_in(address, count) ? synchronise(address, count, flags)
                                             : memory_calls::synchronise(address, count, flags));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int mprotect(void* address, size_t count, int protection) noexcept try {
  PAWL_PASS(real().mprotect(address, count, protection));
  PAWL_RETURN(has_windows_in(address, count) ? protect(address, count, protection)
                                             : memory_calls::protect(address, count, protection));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int pkey_mprotect(void* address, size_t count, int protection, int key) noexcept
    try {
  PAWL_KEEP_ERRNO();
  if (!has_windows_in(address, count) || table::with_windows_in(range_of(address, count)).empty()) {
    PAWL_RETURN(memory_calls::protect_with_key(address, count, protection, key));
  }
  if (key == -1) PAWL_RETURN(protect(address, count, protection));
  PAWL_RETURN(refuse("pkey_mprotect", ENOTSUP, "an atomic mapping cannot have a protection key"));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int madvise(void* address, size_t count, int advice) noexcept try {
  PAWL_PASS(real().madvise(address, count, advice));
  PAWL_RETURN(has_windows_in(address, count) ? advise(address, count, advice)
                                             : memory_calls::advise(address, count, advice));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int mlock(const void* address, size_t count) noexcept try {
  PAWL_PASS(real().mlock(address, count));
  PAWL_RETURN(has_windows_in(address, count) ? lock(address, count, 0)
                                             : memory_calls::lock(address, count, 0));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int mlock2(const void* address, size_t count, unsigned flags) noexcept try {
  PAWL_PASS(real().mlock2(address, count, flags));
  PAWL_RETURN(has_windows_in(address, count) ? lock(address, count, flags)
                                             : memory_calls::lock(address, count, flags));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int mlockall(int flags) noexcept try {
  PAWL_PASS(real().mlockall(flags));
  PAWL_RETURN(table::may_have_windows_in(kEverything) ? lock_all(flags)
                                                      : memory_calls::lock_all(flags));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t process_madvise(int process, const iovec* vectors, size_t count, int advice,
                                       unsigned flags) noexcept try {
  PAWL_KEEP_ERRNO();
  const std::size_t taken = memory_calls::vectors_for_advice(vectors, count);
  const bool may_hold_a_window = std::any_of(vectors, vectors + taken, [](const iovec& vector) {
    return has_windows_in(vector.iov_base, vector.iov_len);
  });
  if (!may_hold_a_window || memory_calls::is_harmless(advice) ||
      memory_calls::is_other_process(process))
    PAWL_RETURN(memory_calls::advise_process(process, vectors, count, advice, flags));
  PAWL_RETURN(
      refuse("process_madvise", EINVAL, "an atomic mapping takes this advice by madvise() only"));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE void* shmat(int id, const void* address, int flags) noexcept try {
  PAWL_KEEP_ERRNO();
  shmid_ds segment{};
  if ((flags & SHM_REMAP) != 0 && shmctl(id, IPC_STAT, &segment) == 0 &&
      has_windows_in(address, segment.shm_segsz) &&
      !table::with_windows_in(range_of(address, segment.shm_segsz)).empty()) {
    PAWL_RETURN(
        refuse_map(Status::failure(EBUSY, "SHM_REMAP would cover an atomic mapping"), "shmat"));
  }
  PAWL_RETURN(memory_calls::attach_shared(id, address, flags));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int remap_file_pages(void* address, size_t count, int protection, size_t page,
                                    int flags) noexcept try {
  PAWL_KEEP_ERRNO();
  if (!has_windows_in(address, count) || table::with_windows_in(range_of(address, count)).empty()) {
    PAWL_RETURN(real().remap_file_pages(address, count, protection, page, flags));
  }
  PAWL_RETURN(refuse("remap_file_pages", ENOTSUP, "an atomic mapping shows its file in one order"));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE void* mremap(void* old_address, size_t old_size, size_t new_size, int flags,
                            ...) noexcept try {
  void* new_address = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    new_address = va_arg(arguments, void*);
    va_end(arguments);
  }
  PAWL_PASS(real().mremap(old_address, old_size, new_size, flags, new_address));
  PAWL_RETURN(remap(old_address, old_size, new_size, flags, new_address));
}
PAWL_OR_NO_MEMORY

}  // namespace pawl::preload
