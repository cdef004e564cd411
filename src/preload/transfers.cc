// Calls that move bytes between descriptors inside the kernel, past the working view.  Those that
// can be done by reading and writing are; the others are refused.
#include "preload/interpose.h"

#include <linux/fs.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "medium/readable_memory.h"
#include "preload/inside.h"
#include "preload/io.h"
#include "preload/messages.h"
#include "preload/other_writers.h"
#include "preload/real.h"
#include "preload/with_tracked.h"

namespace pawl::preload {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 16;  // no more than a pipe holds

bool concerns_us(int one, int other) {
  return !inside() && (table::may_be_tracked(one) || table::may_be_tracked(other));
}
// Where only what is written to may.
bool concerns_us_as_target(int from, int to) {
  return concerns_us(from, to) || (!inside() && may_have_other_writer(to));
}

// First in each call: -1, with errno, where what was committed to the source cannot be read.
int refuse_source(const char* call, int from) {
  return inside() ? 0 : refuse_before_reading(call, from);
}

// An offset that is none is the kernel's to refuse.
bool can_be_read(const off64_t* offset) {
  return offset == nullptr || is_readable(offset, sizeof *offset);
}

// A source or a target: at an offset that the call brings and takes back, or at the descriptor's
// position.
struct End {
  int descriptor;
  off64_t* offset;
  Cancellation cancellation = Cancellation::possible;

  off64_t position() const {
    return offset != nullptr ? *offset : real().lseek(descriptor, 0, SEEK_CUR);
  }
  // The position stays until settle_read(): the call may be cancelled, or left by a signal handler,
  // while it waits for the other end.  What has no position is read at once.
  ssize_t read_some(char* buffer, std::size_t count) const {
    const off64_t at = position();
    const bool has_place = offset != nullptr || at >= 0;
    return read_bytes(descriptor, buffer, count, has_place ? &at : nullptr, cancellation);
  }
  ssize_t write_some(const char* buffer, std::size_t count) const {
    return write_bytes(descriptor, buffer, count, offset, cancellation);
  }
  // After so many of the bytes that were read found their place.
  void settle_read(ssize_t done) const {
    if (offset != nullptr) {
      *offset += done;
    } else {
      real().lseek(descriptor, done, SEEK_CUR);
    }
  }
  void settle_write(ssize_t done) const {
    if (offset != nullptr) *offset += done;
  }
};

bool is_pipe(int descriptor) {
  struct stat status{};
  return real().fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
}

bool is_ready(int descriptor, short events, int timeout) {
  pollfd asked{descriptor, events, 0};
  return poll(&asked, 1, timeout) > 0;
}

// The pipe that splice() writes to.  The kernel waits there once, until something can be moved, and
// not at all with SPLICE_F_NONBLOCK.
struct PipeEnd {
  int descriptor;
  bool waits;

  // Without waiting; where the kernel cannot do that for a pipe, what it takes at once when ready.
  ssize_t write_some(const char* buffer, std::size_t count) const {
    const iovec vector{const_cast<char*>(buffer), count};
    for (;;) {
      const ssize_t moved = real().pwritev2(descriptor, &vector, 1, -1, RWF_NOWAIT);
      if (moved >= 0 || (errno != EAGAIN && errno != EOPNOTSUPP)) return moved;
      const bool is_unsupported = errno == EOPNOTSUPP;
      if (!is_ready(descriptor, POLLOUT, waits ? -1 : 0)) {
        if (!waits) errno = EAGAIN;
        return -1;
      }
      if (is_unsupported)
        return real().write(descriptor, buffer, std::min<std::size_t>(count, PIPE_BUF));
      if (!waits) {
        errno = EAGAIN;
        return -1;
      }
    }
  }
  void settle_write(ssize_t) const {}
};

// read(2) of a pipe without waiting.
ssize_t take_from_pipe(int pipe, char* buffer, std::size_t count) {
  const iovec vector{buffer, count};
  const ssize_t got = real().preadv2(pipe, &vector, 1, -1, RWF_NOWAIT);
  if (got >= 0 || errno != EOPNOTSUPP) return got;
  if (is_ready(pipe, POLLIN, 0)) return real().read(pipe, buffer, count);
  errno = EAGAIN;
  return -1;
}

std::size_t available_in(int pipe) {
  int bytes = 0;
  return real().ioctl(pipe, FIONREAD, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes)
                                                                : 0;
}

// A pipe cannot take back what was read of it, so nothing is before the write is sure.
ssize_t splice_from_pipe(int pipe, bool waits, const End& to, std::size_t count,
                         const std::function<ssize_t()>& otherwise) {
  if ((real().fcntl(to.descriptor, F_GETFL) & O_APPEND) != 0) {
    errno = EINVAL;  // as the kernel
    return -1;
  }
  bool was_empty = false;
  const auto take = [&](char* buffer, std::size_t bytes) {
    const ssize_t got = take_from_pipe(pipe, buffer, bytes);
    was_empty = got < 0 && errno == EAGAIN;
    return got;
  };
  const Taking taking{[&] { return available_in(pipe); }, take, otherwise};
  for (;;) {
    const ssize_t moved = write_taken(to.descriptor, count, to.offset, taking);
    if (moved >= 0) to.settle_write(moved);
    if (!was_empty || !waits) return moved;
    if (!is_ready(pipe, POLLIN, -1)) return -1;
    was_empty = false;
  }
}

template <class From, class To>
ssize_t move_bytes(const From& from, const To& to, std::size_t count) {
  std::vector<char> buffer(std::min(count, kChunkBytes));
  ssize_t moved = 0;
  while (static_cast<std::size_t>(moved) < count) {
    const std::size_t wanted = std::min(count - static_cast<std::size_t>(moved), buffer.size());
    const ssize_t got = from.read_some(buffer.data(), wanted);
    if (got < 0) return moved > 0 ? moved : -1;
    if (got == 0) break;
    const ssize_t done = to.write_some(buffer.data(), static_cast<std::size_t>(got));
    const int error_number = errno;
    from.settle_read(std::max<ssize_t>(done, 0));
    if (done < 0) {
      errno = error_number;
      return moved > 0 ? moved : -1;
    }
    to.settle_write(done);
    moved += done;
    if (done < got || static_cast<std::size_t>(got) < wanted) break;
  }
  return moved;
}

// For reading, or for writing: O_RDONLY or O_WRONLY.
bool is_open_for(int descriptor, int access) {
  const int flags = real().fcntl(descriptor, F_GETFL);
  const bool is_so = (flags & O_ACCMODE) == access || (flags & O_ACCMODE) == O_RDWR;
  return flags >= 0 && (flags & O_PATH) == 0 && is_so;
}
bool appends(int descriptor) { return (real().fcntl(descriptor, F_GETFL) & O_APPEND) != 0; }

// The errno with which Linux refuses a copy, before any byte is copied, in its order; 0: it does
// not.
int check_copy(const End& from, const End& to, std::size_t count) {
  struct stat source{};
  struct stat target{};
  if (real().fstat(from.descriptor, &source) != 0 || real().fstat(to.descriptor, &target) != 0)
    return EBADF;
  if (S_ISDIR(source.st_mode) || S_ISDIR(target.st_mode)) return EISDIR;
  if (!S_ISREG(source.st_mode) || !S_ISREG(target.st_mode)) return EINVAL;
  if (!is_open_for(from.descriptor, O_RDONLY) || !is_open_for(to.descriptor, O_WRONLY) ||
      appends(to.descriptor))
    return EBADF;
  const auto first = static_cast<std::uint64_t>(from.position());
  const auto target_first = static_cast<std::uint64_t>(to.position());
  if (first + count < first || target_first + count < target_first) return EOVERFLOW;
  constexpr std::uint64_t kPositionMax = std::numeric_limits<std::int64_t>::max();
  if (first > kPositionMax || target_first > kPositionMax) return EINVAL;
  if (source.st_dev != target.st_dev || source.st_ino != target.st_ino) return 0;
  const auto size = static_cast<std::uint64_t>(
      size_of_tracked(source.st_dev, source.st_ino).value_or(source.st_size));
  const std::uint64_t copied = first < size ? std::min<std::uint64_t>(count, size - first) : 0;
  return target_first < first + copied && first < target_first + copied ? EINVAL : 0;
}

int check_sending(const End& from, int to) {
  if (!is_open_for(from.descriptor, O_RDONLY)) return EBADF;
  if (from.offset != nullptr && *from.offset < 0) return EINVAL;
  if (!is_open_for(to, O_WRONLY)) return EBADF;
  return appends(to) && !is_pipe(to) ? EINVAL : 0;
}

// `operation` as lio_listio() names it; LIO_NOP for what moves nothing.
int refuse_tracked_aio(const char* call, const aiocb* request, int operation) {
  if (request == nullptr || inside()) return 0;
  const int descriptor = request->aio_fildes;
  if (!table::may_be_tracked(descriptor)) {
    if (operation == LIO_READ && refuse_before_reading(call, descriptor) != 0) return -1;
    if (operation == LIO_WRITE && refuse_beside_other_writer(call, descriptor) != 0) return -1;
    if (!table::may_be_tracked(descriptor)) return 0;
  }
  return refuse(call, ENOTSUP,
                "asynchronous I/O on a file that is mapped atomically; use pread() and pwrite()");
}

bool clones_a_file(unsigned long request) {
  return request == FICLONE || request == FICLONERANGE || request == FIDEDUPERANGE;
}

// By number, whatever the length of the argument, in which headers differ: XFS's requests to take
// and to give back space, which most file systems serve, and its and ext4's to exchange blocks.
bool changes_blocks(unsigned long request) {
  constexpr std::array kOfXfs = {10, 11, 36, 37, 40, 41, 42, 43, 57, 109, 129};
  constexpr std::array kOfExt4 = {15, 17};
  const auto is_among = [number = static_cast<int>(_IOC_NR(request))](const auto& numbers) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  };
  return (_IOC_TYPE(request) == 'X' && is_among(kOfXfs)) ||
         (_IOC_TYPE(request) == 'f' && is_among(kOfExt4));
}

int clone_source(unsigned long request, const void* argument) {
  if (request == FICLONE) return static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  if (request == FICLONERANGE && is_readable(argument, sizeof(file_clone_range)))
    return static_cast<int>(static_cast<const file_clone_range*>(argument)->src_fd);
  return -1;
}

}  // namespace

PAWL_INTERPOSE ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset,
                                       size_t count, unsigned flags) try {
  PAWL_PASS(real().copy_file_range(from, from_offset, to, to_offset, count, flags));
  if (refuse_source("copy_file_range", from) != 0) PAWL_RETURN(-1);
  if (!concerns_us_as_target(from, to) || !can_be_read(from_offset) || !can_be_read(to_offset))
    PAWL_RETURN(real().copy_file_range(from, from_offset, to, to_offset, count, flags));
  const End source{from, from_offset};
  const End target{to, to_offset};
  if (const int wrong = flags != 0 ? EINVAL : check_copy(source, target, count); wrong != 0) {
    errno = wrong;
    PAWL_RETURN(-1);
  }
  PAWL_RETURN(move_bytes(source, target, count));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t sendfile(int to, int from, off_t* offset, size_t count) noexcept try {
  PAWL_KEEP_ERRNO();
  if (refuse_source("sendfile", from) != 0) PAWL_RETURN(-1);
  if (!concerns_us_as_target(from, to) || !can_be_read(offset))
    PAWL_RETURN(real().sendfile(to, from, offset, count));
  // It is no cancellation point, and the write() that takes its place is one.
  constexpr Cancellation kIgnored = Cancellation::ignored;
  const End source{from, offset, kIgnored};
  if (const int wrong = check_sending(source, to); wrong != 0) {
    errno = wrong;
    PAWL_RETURN(-1);
  }
  PAWL_RETURN(move_bytes(source, End{to, nullptr, kIgnored}, count));
}
PAWL_OR_NO_MEMORY

PAWL_ALSO_KNOWN_AS(sendfile64, sendfile);

PAWL_INTERPOSE ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset,
                              size_t count, unsigned flags) try {
  PAWL_KEEP_ERRNO();
  if (refuse_source("splice", from) != 0) PAWL_RETURN(-1);
  if (!concerns_us_as_target(from, to) || !can_be_read(from_offset) || !can_be_read(to_offset))
    PAWL_RETURN(real().splice(from, from_offset, to, to_offset, count, flags));
  count = std::min(count, kChunkBytes);
  const bool is_from_pipe = is_pipe(from);
  const int pipe = is_from_pipe ? from : to;
  if (!is_pipe(pipe)) {
    errno = EINVAL;
    PAWL_RETURN(-1);
  }
  if ((is_from_pipe ? from_offset : to_offset) != nullptr) {
    errno = ESPIPE;
    PAWL_RETURN(-1);
  }
  const bool waits =
      (flags & SPLICE_F_NONBLOCK) == 0 && (real().fcntl(pipe, F_GETFL) & O_NONBLOCK) == 0;
  if (count == 0) PAWL_RETURN(0);
  if (!is_from_pipe) PAWL_RETURN(move_bytes(End{from, from_offset}, PipeEnd{pipe, waits}, count));
  PAWL_RETURN(splice_from_pipe(pipe, waits, End{to, to_offset}, count, [&] {
    off64_t at = to_offset != nullptr ? *to_offset : 0;
    return real().splice(from, nullptr, to, to_offset != nullptr ? &at : nullptr, count, flags);
  }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int ioctl(int descriptor, unsigned long request, ...) noexcept try {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  PAWL_PASS(real().ioctl(descriptor, request, argument));
  if (clones_a_file(request) && refuse_source("ioctl", clone_source(request, argument)) != 0)
    PAWL_RETURN(-1);
  if (clones_a_file(request) && concerns_us(descriptor, clone_source(request, argument))) {
    PAWL_RETURN(
        refuse("ioctl", EOPNOTSUPP,
               "a file that is mapped atomically cannot share its blocks with another; copy it"));
  }
  if ((clones_a_file(request) || changes_blocks(request)) &&
      refuse_beside_other_writer("ioctl", descriptor) != 0)
    PAWL_RETURN(-1);
  if (changes_blocks(request) && concerns_us(descriptor, -1)) {
    PAWL_RETURN(refuse("ioctl", EOPNOTSUPP,
                       "the blocks of a file that is mapped atomically are not to be changed "
                       "beneath it; use fallocate()"));
  }
  PAWL_RETURN(real().ioctl(descriptor, request, argument));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int aio_read(aiocb* request) noexcept try {
  PAWL_KEEP_ERRNO();
  PAWL_RETURN(refuse_tracked_aio("aio_read", request, LIO_READ) != 0 ? -1
                                                                     : real().aio_read(request));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int aio_write(aiocb* request) noexcept try {
  PAWL_KEEP_ERRNO();
  PAWL_RETURN(refuse_tracked_aio("aio_write", request, LIO_WRITE) != 0 ? -1
                                                                       : real().aio_write(request));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int aio_fsync(int operation, aiocb* request) noexcept try {
  PAWL_KEEP_ERRNO();
  PAWL_RETURN(refuse_tracked_aio("aio_fsync", request, LIO_NOP) != 0
                  ? -1
                  : real().aio_fsync(operation, request));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int lio_listio(int mode, aiocb* const requests[], int count,
                              sigevent* event) noexcept try {
  PAWL_KEEP_ERRNO();
  for (int i = 0; i < count; ++i) {
    const int operation = requests[i] != nullptr ? requests[i]->aio_lio_opcode : LIO_NOP;
    if (refuse_tracked_aio("lio_listio", requests[i], operation) != 0) PAWL_RETURN(-1);
  }
  PAWL_RETURN(real().lio_listio(mode, requests, count, event));
}
PAWL_OR_NO_MEMORY

// The 64-bit structures are the same ones.
PAWL_ALSO_KNOWN_AS(aio_read64, aio_read);
PAWL_ALSO_KNOWN_AS(aio_write64, aio_write);
PAWL_ALSO_KNOWN_AS(aio_fsync64, aio_fsync);
PAWL_ALSO_KNOWN_AS(lio_listio64, lio_listio);

}  // namespace pawl::preload
