// read, write and their kin on descriptors of tracked files: coherent with the working view, and
// part of the next commit.  The file position stays the kernel's, so that dup() and fork() share it
// as ever.
#include "preload/interpose.h"

#include <sys/syscall.h>
#include <climits>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <vector>

#include "mapping/border.h"
#include "medium/readable_memory.h"
#include "preload/group.h"
#include "preload/inside.h"
#include "preload/io.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/other_writers.h"
#include "preload/real.h"
#include "track/guarded_vectors.h"

extern "C" {
ssize_t __read_chk(int descriptor, void* buffer, size_t count, size_t buffer_size);
ssize_t __pread_chk(int descriptor, void* buffer, size_t count, off_t offset, size_t buffer_size);
ssize_t __pread64_chk(int descriptor, void* buffer, size_t count, off64_t offset,
                      size_t buffer_size);
}

namespace pawl::preload {
namespace {

constexpr std::size_t kTransferBytesMax = 0x7ffff000;  // the kernel's own bound for one call

// Where a call reads or writes: at an offset of its own, or at the descriptor's position.
struct Place {
  std::optional<off_t> offset;
};
constexpr Place kAtPosition{};

Result<std::uint64_t> position_of(int descriptor, const Place& place) {
  const off_t at = place.offset ? *place.offset : real().lseek(descriptor, 0, SEEK_CUR);
  if (at < 0) return Status::failure(place.offset ? EINVAL : errno, "the file position is not one");
  return static_cast<std::uint64_t>(at);
}

// Of Linux 6.9 and 6.14, which headers may lack.
constexpr int kRwfNoAppend = 0x20;
constexpr int kRwfDontCache = 0x80;

// The errno for flags that a tracked file cannot honour, else 0.
int check_flags(int flags) {
  constexpr int kHonoured = RWF_DSYNC | RWF_SYNC | RWF_APPEND | kRwfNoAppend;
  constexpr int kWishes = RWF_HIPRI | RWF_NOWAIT | kRwfDontCache;
  if ((flags & ~(kHonoured | kWishes)) != 0) return EOPNOTSUPP;
  constexpr int kBoth = RWF_APPEND | kRwfNoAppend;
  return (flags & kBoth) == kBoth ? EINVAL : 0;
}

// The kernel, which reads none of them, says what is wrong.
bool are_for_the_kernel(int descriptor, const iovec* vectors, int count) {
  return table::may_be_tracked(descriptor) && count > 0 && count <= IOV_MAX &&
         !are_readable(vectors, static_cast<std::size_t>(count));
}

bool vectors_are_valid(const iovec* vectors, int count) {
  if (count < 0 || count > IOV_MAX) return false;
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    if (vectors[i].iov_len > static_cast<std::size_t>(SSIZE_MAX) - total) return false;
    total += vectors[i].iov_len;
  }
  return true;
}

std::size_t total_bytes(const iovec* vectors, int count) {
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) total += vectors[i].iov_len;
  return total;
}

// Calls touch(address) for one byte of each page that the first `bytes` of the vectors lie in.
//
// The program's memory is copied from and to while its file is locked, and its handler of SIGSEGV
// or SIGBUS may never return (siglongjmp).  So a bad address is found before anything is held.
template <class Touch>
void touch_pages(const iovec* vectors, int count, std::size_t bytes, const Touch& touch) {
  for (int i = 0; i < count && bytes > 0; ++i) {
    const std::size_t wanted = std::min(vectors[i].iov_len, bytes);
    bytes -= wanted;
    auto* const first = static_cast<unsigned char*>(vectors[i].iov_base);
    const std::size_t to_next_page =
        kPageBytes - reinterpret_cast<std::uintptr_t>(first) % kPageBytes;
    if (wanted > 0) touch(first);
    for (std::size_t at = to_next_page; at < wanted; at += kPageBytes) touch(first + at);
  }
}

void load_from(const unsigned char* address) {
  (void)*static_cast<const volatile unsigned char*>(address);
}

// Stores, and changes nothing, also where another thread stores at the same time.
void store_to(unsigned char* address) {
  unsigned char nothing = 0;
  asm volatile(
      ""
      : "+r"(nothing));  // compilers make a plain fence of an exchange that they see through
  __atomic_fetch_or(address, nothing, __ATOMIC_RELAXED);
}

ssize_t read_tracked(TrackedFile& file, int descriptor, const iovec* vectors, int count,
                     const Place& place, std::size_t bytes_max) {
  const int flags = real().fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY) {
    errno = EBADF;
    return -1;
  }
  const auto start_at = position_of(descriptor, place);
  if (!start_at.ok()) {
    errno = start_at.status().error_number();
    return -1;
  }
  std::uint64_t offset = start_at.value();
  for (int i = 0; i < count; ++i) {
    const std::size_t room = bytes_max - static_cast<std::size_t>(offset - start_at.value());
    const std::size_t wanted = std::min(vectors[i].iov_len, room);
    const auto got =
        file.mapping->read(offset, {static_cast<std::byte*>(vectors[i].iov_base), wanted});
    if (!got.ok()) {
      if (offset > start_at.value()) break;
      return refuse("read", got.status());
    }
    offset += got.value();
    if (got.value() < vectors[i].iov_len) break;
  }
  if (!place.offset) real().lseek(descriptor, static_cast<off_t>(offset), SEEK_SET);
  return static_cast<ssize_t>(offset - start_at.value());
}

// Where a write begins, and the descriptor's flags.
struct WriteStart {
  std::uint64_t first;
  int flags;
};

// Empty, with errno, when the write fails whatever its bytes are.
std::optional<WriteStart> begin_write(const TrackedFile& file, int descriptor, const Place& place,
                                      int write_flags) {
  const int flags = real().fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
    errno = EBADF;
    return std::nullopt;
  }
  if (const int wrong = check_flags(write_flags); wrong != 0) {
    errno = wrong;
    return std::nullopt;
  }
  if (const Status ours = check_ours(file); !ours.ok()) {
    refuse("write", ours);
    return std::nullopt;
  }
  const auto start_at = position_of(descriptor, place);
  if (!start_at.ok()) {
    errno = start_at.status().error_number();
    return std::nullopt;
  }
  // Linux appends in pwrite() as well.
  const bool append = ((flags & O_APPEND) != 0 && (write_flags & kRwfNoAppend) == 0) ||
                      (write_flags & RWF_APPEND) != 0;
  return WriteStart{append ? file.mapping->size() : start_at.value(), flags};
}

ssize_t write_tracked(TrackedFile& file, int descriptor, const iovec* vectors, int count,
                      const Place& place, int write_flags) {
  const auto start = begin_write(file, descriptor, place, write_flags);
  if (!start) return -1;
  std::uint64_t offset = start->first;
  for (int i = 0; i < count; ++i) {
    const std::size_t room = kTransferBytesMax - static_cast<std::size_t>(offset - start->first);
    const std::size_t wanted = std::min(vectors[i].iov_len, room);
    if (wanted == 0) continue;
    const Status written = at_border([&] {
      return file.mapping->write(offset,
                                 {static_cast<const std::byte*>(vectors[i].iov_base), wanted});
    });
    if (!written.ok()) {
      if (offset > start->first) break;
      return refuse("write", written);
    }
    offset += wanted;
  }
  if ((start->flags & (O_SYNC | O_DSYNC)) != 0 || (write_flags & (RWF_SYNC | RWF_DSYNC)) != 0) {
    if (const Status committed = synchronise_all(file); !committed.ok())
      return refuse("write", committed);
  }
  if (!place.offset) real().lseek(descriptor, static_cast<off_t>(offset), SEEK_SET);
  return static_cast<ssize_t>(offset - start->first);
}

// The file grows first, where it will: that is what can fail.
ssize_t write_taken_to(TrackedFile& file, int descriptor, std::size_t count, const Place& place,
                       const Taking& taking) {
  const auto start = begin_write(file, descriptor, place, 0);
  if (!start) return -1;
  const std::uint64_t size = file.mapping->size();
  std::vector<char> buffer(std::clamp(taking.available(), std::size_t{1}, count));
  if (start->first + buffer.size() > size) {
    const Status grown = file.mapping->truncate(start->first + buffer.size());
    if (!grown.ok()) return refuse("write", grown);
  }
  const ssize_t got = taking.take(buffer.data(), buffer.size());
  const int error_number = errno;
  const std::uint64_t end = got > 0 ? start->first + static_cast<std::uint64_t>(got) : 0;
  if (std::max(end, size) < file.mapping->size()) {
    const Status cut = file.mapping->truncate(std::max(end, size));
    if (!cut.ok()) say("write", cut.text());
  }
  errno = error_number;
  if (got <= 0) return got;
  const iovec vector{buffer.data(), static_cast<std::size_t>(got)};
  return write_tracked(file, descriptor, &vector, 1, place, 0);
}

// Calls work(file) when the descriptor is one of a tracked file, else otherwise(): that may wait,
// and is not inside.
template <class Work, class Otherwise>
auto for_tracked(int descriptor, const Work& work, const Otherwise& otherwise)
    -> decltype(otherwise()) {
  if (!inside() && table::may_be_tracked(descriptor)) {
    const Inside working;
    const Held file = hold_descriptor(descriptor);
    if (file && file->mapping != nullptr) return work(*file);
  }
  return otherwise();
}

// The same of a call that writes.
template <class Work, class Otherwise>
ssize_t for_written(int descriptor, const Work& work, const Otherwise& otherwise) {
  const bool was_tracked = table::may_be_tracked(descriptor);
  // Behind that another thread may have mapped it.
  if (!was_tracked && refuse_beside_other_writer("write", descriptor) != 0) return -1;
  return for_tracked(descriptor, work, [&]() -> ssize_t {
    return was_tracked && refuse_beside_other_writer("write", descriptor) != 0 ? -1 : otherwise();
  });
}

// How many bytes a read gets at most.  The pages that these go to can be stored to.
std::size_t make_ready_for_reading(int descriptor, const iovec* vectors, int count,
                                   const Place& place) {
  if (inside() || !table::may_be_tracked(descriptor) || !vectors_are_valid(vectors, count))
    return kTransferBytesMax;
  const std::size_t there = for_tracked(
      descriptor,
      [&](const TrackedFile& file) -> std::size_t {
        const auto start_at = position_of(descriptor, place);
        if (!start_at.ok() || start_at.value() >= file.mapping->size()) return 0;
        return std::min<std::uint64_t>(file.mapping->size() - start_at.value(), kTransferBytesMax);
      },
      [] { return kTransferBytesMax; });
  const std::size_t bytes = std::min(there, total_bytes(vectors, count));
  touch_pages(vectors, count, bytes, store_to);
  return bytes;
}

void make_ready_for_writing(int descriptor, const iovec* vectors, int count) {
  if (inside() || !table::may_be_tracked(descriptor) || !vectors_are_valid(vectors, count)) return;
  touch_pages(vectors, count, kTransferBytesMax, load_from);
}

template <class Otherwise>
ssize_t read_vectors(int descriptor, const iovec* vectors, int count, const Place& place,
                     const Otherwise& otherwise) {
  const std::size_t bytes_max = make_ready_for_reading(descriptor, vectors, count, place);
  // What is read into mappings is a store like any other.
  GuardedVectors guard(vectors, count);
  return guard.stored(for_tracked(
      descriptor,
      [&](TrackedFile& file) -> ssize_t {
        if (!vectors_are_valid(vectors, count)) {
          errno = EINVAL;
          return -1;
        }
        return read_tracked(file, descriptor, vectors, count, place, bytes_max);
      },
      [&]() -> ssize_t {
        return refuse_before_reading("read", descriptor) != 0 ? -1 : otherwise();
      }));
}

template <class Otherwise>
ssize_t write_vectors(int descriptor, const iovec* vectors, int count, const Place& place,
                      int flags, const Otherwise& otherwise) {
  make_ready_for_writing(descriptor, vectors, count);
  return for_written(
      descriptor,
      [&](TrackedFile& file) -> ssize_t {
        if (!vectors_are_valid(vectors, count)) {
          errno = EINVAL;
          return -1;
        }
        return write_tracked(file, descriptor, vectors, count, place, flags);
      },
      otherwise);
}

off_t seek_tracked(const TrackedFile& file, int descriptor, off_t offset, int whence) {
  const auto size = static_cast<off_t>(file.mapping->size());
  switch (whence) {
    case SEEK_END:
      if (offset > 0 && size > std::numeric_limits<off_t>::max() - offset) {
        errno = EOVERFLOW;
        return -1;
      }
      if (size + offset < 0) {
        errno = EINVAL;
        return -1;
      }
      return real().lseek(descriptor, size + offset, SEEK_SET);
    case SEEK_DATA:
    case SEEK_HOLE:
      // What the kernel knows of holes is the base's; that all is data is always a right answer.
      if (offset < 0 || offset >= size) {
        errno = ENXIO;
        return -1;
      }
      return real().lseek(descriptor, whence == SEEK_DATA ? offset : size, SEEK_SET);
    default:
      return real().lseek(descriptor, offset, whence);
  }
}

}  // namespace

ssize_t read_bytes(int descriptor, void* buffer, std::size_t count, const off_t* offset,
                   Cancellation cancellation) {
  const iovec vector{buffer, count};
  const Place place = offset != nullptr ? Place{*offset} : kAtPosition;
  return read_vectors(descriptor, &vector, 1, place, [&]() -> ssize_t {
    // syscall() is no cancellation point.
    if (cancellation == Cancellation::ignored) {
      return offset != nullptr ? syscall(SYS_pread64, descriptor, buffer, count, *offset)
                               : syscall(SYS_read, descriptor, buffer, count);
    }
    return offset != nullptr ? real().pread(descriptor, buffer, count, *offset)
                             : real().read(descriptor, buffer, count);
  });
}

ssize_t write_bytes(int descriptor, const void* buffer, std::size_t count, const off_t* offset,
                    Cancellation cancellation) {
  const iovec vector{const_cast<void*>(buffer), count};
  const Place place = offset != nullptr ? Place{*offset} : kAtPosition;
  return write_vectors(descriptor, &vector, 1, place, 0, [&]() -> ssize_t {
    if (cancellation == Cancellation::ignored) {
      return offset != nullptr ? syscall(SYS_pwrite64, descriptor, buffer, count, *offset)
                               : syscall(SYS_write, descriptor, buffer, count);
    }
    return offset != nullptr ? real().pwrite(descriptor, buffer, count, *offset)
                             : real().write(descriptor, buffer, count);
  });
}

ssize_t write_taken(int descriptor, std::size_t count, const off_t* offset, const Taking& taking) {
  const Place place = offset != nullptr ? Place{*offset} : kAtPosition;
  return for_written(
      descriptor,
      [&](TrackedFile& file) { return write_taken_to(file, descriptor, count, place, taking); },
      taking.otherwise);
}

PAWL_INTERPOSE ssize_t read(int descriptor, void* buffer, size_t count) try {
  PAWL_PASS(real().read(descriptor, buffer, count));
  pthread_testcancel();
  PAWL_RETURN(read_bytes(descriptor, buffer, count, nullptr));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t pread(int descriptor, void* buffer, size_t count, off_t offset) try {
  PAWL_PASS(real().pread(descriptor, buffer, count, offset));
  pthread_testcancel();
  PAWL_RETURN(read_bytes(descriptor, buffer, count, &offset));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t readv(int descriptor, const iovec* vectors, int count) try {
  PAWL_PASS(real().readv(descriptor, vectors, count));
  pthread_testcancel();
  if (are_for_the_kernel(descriptor, vectors, count))
    PAWL_RETURN(real().readv(descriptor, vectors, count));
  PAWL_RETURN(read_vectors(descriptor, vectors, count, kAtPosition,
                           [&] { return real().readv(descriptor, vectors, count); }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t preadv(int descriptor, const iovec* vectors, int count, off_t offset) try {
  PAWL_PASS(real().preadv(descriptor, vectors, count, offset));
  pthread_testcancel();
  if (are_for_the_kernel(descriptor, vectors, count))
    PAWL_RETURN(real().preadv(descriptor, vectors, count, offset));
  PAWL_RETURN(read_vectors(descriptor, vectors, count, {offset},
                           [&] { return real().preadv(descriptor, vectors, count, offset); }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t preadv2(int descriptor, const iovec* vectors, int count, off_t offset,
                               int flags) try {
  PAWL_PASS(real().preadv2(descriptor, vectors, count, offset, flags));
  pthread_testcancel();
  if (are_for_the_kernel(descriptor, vectors, count))
    PAWL_RETURN(real().preadv2(descriptor, vectors, count, offset, flags));
  const Place place = offset == -1 ? kAtPosition : Place{offset};
  if (const int wrong = check_flags(flags); wrong != 0 && table::may_be_tracked(descriptor)) {
    errno = wrong;
    PAWL_RETURN(-1);
  }
  PAWL_RETURN(read_vectors(descriptor, vectors, count, place, [&] {
    return real().preadv2(descriptor, vectors, count, offset, flags);
  }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t write(int descriptor, const void* buffer, size_t count) try {
  PAWL_PASS_OR_REFUSE("write", table::may_be_tracked(descriptor),
                      real().write(descriptor, buffer, count));
  pthread_testcancel();
  PAWL_RETURN(write_bytes(descriptor, buffer, count, nullptr));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t pwrite(int descriptor, const void* buffer, size_t count, off_t offset) try {
  PAWL_PASS_OR_REFUSE("write", table::may_be_tracked(descriptor),
                      real().pwrite(descriptor, buffer, count, offset));
  pthread_testcancel();
  PAWL_RETURN(write_bytes(descriptor, buffer, count, &offset));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t writev(int descriptor, const iovec* vectors, int count) try {
  PAWL_PASS_OR_REFUSE("write", table::may_be_tracked(descriptor),
                      real().writev(descriptor, vectors, count));
  pthread_testcancel();
  if (are_for_the_kernel(descriptor, vectors, count))
    PAWL_RETURN(real().writev(descriptor, vectors, count));
  PAWL_RETURN(write_vectors(descriptor, vectors, count, kAtPosition, 0,
                            [&] { return real().writev(descriptor, vectors, count); }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t pwritev(int descriptor, const iovec* vectors, int count, off_t offset) try {
  PAWL_PASS_OR_REFUSE("write", table::may_be_tracked(descriptor),
                      real().pwritev(descriptor, vectors, count, offset));
  pthread_testcancel();
  if (are_for_the_kernel(descriptor, vectors, count))
    PAWL_RETURN(real().pwritev(descriptor, vectors, count, offset));
  PAWL_RETURN(write_vectors(descriptor, vectors, count, {offset}, 0,
                            [&] { return real().pwritev(descriptor, vectors, count, offset); }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t pwritev2(int descriptor, const iovec* vectors, int count, off_t offset,
                                int flags) try {
  PAWL_PASS_OR_REFUSE("write", table::may_be_tracked(descriptor),
                      real().pwritev2(descriptor, vectors, count, offset, flags));
  pthread_testcancel();
  if (are_for_the_kernel(descriptor, vectors, count))
    PAWL_RETURN(real().pwritev2(descriptor, vectors, count, offset, flags));
  const Place place = offset == -1 ? kAtPosition : Place{offset};
  PAWL_RETURN(write_vectors(descriptor, vectors, count, place, flags, [&] {
    return real().pwritev2(descriptor, vectors, count, offset, flags);
  }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE off_t lseek(int descriptor, off_t offset, int whence) noexcept try {
  PAWL_PASS(real().lseek(descriptor, offset, whence));
  PAWL_RETURN(for_tracked(
      descriptor,
      [&](const TrackedFile& file) { return seek_tracked(file, descriptor, offset, whence); },
      [&] { return real().lseek(descriptor, offset, whence); }));
}
PAWL_OR_NO_MEMORY

// The same under their other names.

PAWL_ALSO_KNOWN_AS(pread64, pread);
PAWL_ALSO_KNOWN_AS(preadv64, preadv);
PAWL_ALSO_KNOWN_AS(preadv64v2, preadv2);
PAWL_ALSO_KNOWN_AS(pwrite64, pwrite);
PAWL_ALSO_KNOWN_AS(pwritev64, pwritev);
PAWL_ALSO_KNOWN_AS(pwritev64v2, pwritev2);
PAWL_ALSO_KNOWN_AS(lseek64, lseek);
PAWL_ALSO_KNOWN_AS(__read, read);
PAWL_ALSO_KNOWN_AS(__write, write);
PAWL_ALSO_KNOWN_AS(__pread64, pread);
PAWL_ALSO_KNOWN_AS(__pwrite64, pwrite);
PAWL_ALSO_KNOWN_AS(__lseek, lseek);

// What a program built with _FORTIFY_SOURCE calls: the same, and the buffer's size is checked.

PAWL_INTERPOSE ssize_t __read_chk(int descriptor, void* buffer, size_t count,
                                  size_t buffer_size) try {
  PAWL_KEEP_ERRNO();
  if (count > buffer_size) __chk_fail();
  PAWL_RETURN(read_bytes(descriptor, buffer, count, nullptr));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE ssize_t __pread_chk(int descriptor, void* buffer, size_t count, off_t offset,
                                   size_t buffer_size) try {
  PAWL_KEEP_ERRNO();
  if (count > buffer_size) __chk_fail();
  PAWL_RETURN(read_bytes(descriptor, buffer, count, &offset));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(__pread64_chk, __pread_chk);

}  // namespace pawl::preload
