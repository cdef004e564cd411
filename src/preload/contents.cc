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

Status check_mode_of_allocation(const TrackedFile& file, int mode) {
  switch (mode) {
    case 0:
    case FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_ZERO_RANGE:
      return {};
    default:
      return Status::failure(
          EOPNOTSUPP,
          "a file that is mapped atomically (" + file.path +
              ") can be extended and zeroed in place, not collapsed, inserted into or unshared");
  }
}

Status allocate(TrackedFile& file, int mode, std::uint64_t offset, std::uint64_t length) {
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const std::uint64_t wanted_end = offset + length;
  const std::uint64_t end = keeps_size ? std::min(wanted_end, file.mapping->size()) : wanted_end;
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0)
    return write_zeros(file, offset, end);
  // Space beyond the end is a wish about speed; space inside is a promise.
  return offset < end ? file.mapping->allocate(offset, end - offset) : Status{};
}

}  // namespace pawl::preload
