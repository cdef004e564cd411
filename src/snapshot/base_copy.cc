#include "snapshot/base_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "medium/size_limit.h"

namespace pawl::snapshot {
namespace {

constexpr off_t kPieceBytesMax = off_t{1} << 20;

Status failed(const char* what, off_t end = 0) {
  const int failure = errno;
  return FailedCall{failure, std::string("cannot copy the file: ") + what,
                    code_of_size(failure, static_cast<std::uint64_t>(end))};
}

// Whether the answer of a call that copies within the kernel means that it cannot be done that way.
bool is_not_possible(int error_number) {
  switch (error_number) {
    case EINVAL:
    case ENOSYS:
    case ENOTTY:
    case EOPNOTSUPP:
    case EPERM:
    case ETXTBSY:
    case EXDEV:
      return true;
    default:
      return false;
  }
}

class Copy {
 public:
  Copy(int from, int to) : from_(from), to_(to) {}

  Status range(off_t at, off_t end) {
    while (at < end) {
      const auto wanted = static_cast<std::size_t>(std::min(end - at, kPieceBytesMax));
      auto done = piece(at, wanted);
      if (!done.ok()) return done.status();
      if (done.value() == 0) return {};  // the file became shorter
      at += static_cast<off_t>(done.value());
    }
    return {};
  }

 private:
  Result<std::size_t> piece(off_t at, std::size_t wanted) {
    if (within_kernel_) {
      off_t in = at;
      off_t out = at;
      const ssize_t done =
          without_size_signal([&] { return ::copy_file_range(from_, &in, to_, &out, wanted, 0); });
      if (done > 0) return static_cast<std::size_t>(done);
      if (done < 0 && errno == EINTR) return piece(at, wanted);
      if (done < 0 && !is_not_possible(errno))
        return failed("copying", at + static_cast<off_t>(wanted));
      // 0 is what some file systems answer for what they do not copy, as well as at the end.
      within_kernel_ = false;
    }
    if (buffer_ == nullptr) buffer_ = std::make_unique<std::byte[]>(kPieceBytesMax);
    ssize_t got = 0;
    do got = ::pread(from_, buffer_.get(), wanted, at);
    while (got < 0 && errno == EINTR);
    if (got < 0) return failed("reading");
    const auto count = static_cast<std::size_t>(got);
    for (std::size_t written = 0; written < count;) {
      const ssize_t put = without_size_signal([&] {
        return ::pwrite(to_, buffer_.get() + written, count - written,
                        at + static_cast<off_t>(written));
      });
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return failed("writing", at + static_cast<off_t>(count));
      written += static_cast<std::size_t>(put);
    }
    return count;
  }

  const int from_;
  const int to_;
  bool within_kernel_ = true;
  std::unique_ptr<std::byte[]> buffer_;
};

}  // namespace

Result<CopyKind> copy_base(int from, int to, std::uint64_t copied_bytes_max) {
  if (::ftruncate(to, 0) != 0) return failed("emptying");
  struct stat status{};
  if (::fstat(from, &status) != 0) return failed("its size");
  const off_t size = status.st_size;
  if (without_size_signal([&] { return ::ioctl(to, FICLONE, from); }) == 0) return CopyKind::shared;
  if (!is_not_possible(errno)) return failed("sharing its blocks", size);
  if (static_cast<std::uint64_t>(size) > copied_bytes_max) {
    return Status::failure(EFBIG, PAWL_ERROR_TOO_LARGE,
                           "the file has " + std::to_string(size) +
                               " bytes, and its blocks cannot be shared here: more than " +
                               std::to_string(copied_bytes_max) + " are not copied unasked");
  }
  Copy copy(from, to);
  for (off_t at = 0; at < size;) {
    off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // holes up to the end
    if (data < 0) data = at;                // not known here: all is data
    if (data >= size) break;
    off_t end = ::lseek(from, data, SEEK_HOLE);
    if (end < 0 || end > size) end = size;
    if (const Status copied = copy.range(data, end); !copied.ok()) return copied;
    at = end;
  }
  if (without_size_signal([&] { return ::ftruncate(to, size); }) != 0)
    return failed("its size", size);
  return CopyKind::copied;
}

}  // namespace pawl::snapshot
