#include "preload/contents.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include <linux/falloc.h>

namespace pawl::preload {
namespace {

constexpr std::byte kZeros[1 << 16] = {};

}  // namespace

Status write_zeros(TrackedFile& file, std::uint64_t from, std::uint64_t end) {
  while (from < end) {
    const std::size_t count = std::min<std::uint64_t>(end - from, sizeof(kZeros));
    PAWL_TRY(file.mapping->write(from, {kZeros, count}));
    from += count;
  }
  return {};
}

Status allocate(TrackedFile& file, int mode, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = offset + length;
  const std::uint64_t end_in_file = std::min(end, file.mapping->size());
  switch (mode) {
    case 0:
      return file.mapping->allocate(offset, length);
    case FALLOC_FL_KEEP_SIZE:
      // Space beyond the end is a wish about speed; space inside is a promise.
      return offset < end_in_file ? file.mapping->allocate(offset, end_in_file - offset) : Status{};
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return write_zeros(file, offset, end_in_file);
    case FALLOC_FL_ZERO_RANGE:
      return write_zeros(file, offset, end);
    default:
      return Status::failure(
          EOPNOTSUPP,
          "a file that is mapped atomically (" + file.path +
              ") can be extended and zeroed in place, not collapsed, inserted into or unshared");
  }
}

}  // namespace pawl::preload
