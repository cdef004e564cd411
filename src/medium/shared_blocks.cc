#include "medium/shared_blocks.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

namespace pawl {
namespace {

constexpr std::uint64_t kUnshareUnitBytes = std::uint64_t{128} << 10;
// For what a copy-on-write file system writes of its own.
constexpr std::uint64_t kFreeBytesMin = std::uint64_t{1} << 20;
constexpr std::size_t kExtentsAtATime = 16;
// Which not all kernels' headers have.
constexpr long kBcachefsMagic = 0xca451a4e;
constexpr long kZfsMagic = 0x2fc12fc1;
constexpr long kNilfsMagic = 0x3434;

constexpr std::size_t kAnswerBytes = sizeof(fiemap) + kExtentsAtATime * sizeof(fiemap_extent);

struct Range {
  std::uint64_t start;
  std::uint64_t end;
};

// 0, or an errno.
int take_own_blocks(int descriptor, const Range& range) {
  while (::fallocate(descriptor, FALLOC_FL_KEEP_SIZE | FALLOC_FL_UNSHARE_RANGE,
                     static_cast<off_t>(range.start),
                     static_cast<off_t>(range.end - range.start)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

SharedBlocks::Kind SharedBlocks::kind_of(int descriptor) {
  Kind kind = kind_.load(std::memory_order_relaxed);
  if (kind != Kind::unknown) return kind;
  kind = Kind::never_shared;
  struct statfs file_system{};
  if (::fstatfs(descriptor, &file_system) == 0) {
    switch (file_system.f_type) {
      case XFS_SUPER_MAGIC:
      case OCFS2_SUPER_MAGIC:
      case OVERLAYFS_SUPER_MAGIC:  // It has the blocks of a file system below it.
        kind = Kind::may_be_shared;
        unit_bytes_.store(
            std::bit_ceil(std::max(kPageBytes, static_cast<std::uint64_t>(file_system.f_bsize))),
            std::memory_order_relaxed);
        break;
      // A file with the attribute NOCOW, too: a copy, a snapshot (even one that is gone again) or a
      // balance makes the next overwrite take new blocks, and not all of that can be asked for.
      case BTRFS_SUPER_MAGIC:
      case kBcachefsMagic:
      case kZfsMagic:
      case kNilfsMagic:
        kind = Kind::never_in_place;
        break;
      default:
        break;
    }
  }
  kind_.store(kind, std::memory_order_relaxed);
  return kind;
}

std::uint64_t SharedBlocks::unit_bytes(int descriptor) {
  const Kind kind = kind_of(descriptor);
  return kind == Kind::may_be_shared ? unit_bytes_.load(std::memory_order_relaxed) : kPageBytes;
}

Status SharedBlocks::check_overwrite(int descriptor, const std::string& path, std::uint64_t bytes) {
  if (kind_of(descriptor) != Kind::never_in_place) return {};
  struct statvfs disk{};
  if (::fstatvfs(descriptor, &disk) != 0 ||
      static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize >= bytes + kFreeBytesMin)
    return {};
  return FailedCall{ENOSPC, "cannot overwrite " + std::to_string(bytes) + " bytes of " + path +
                                ", which its file system writes to free blocks"};
}

Result<std::uint64_t> SharedBlocks::find(int descriptor, const std::string& path,
                                         std::uint64_t offset, std::uint64_t end,
                                         const MediumFile::FoundShared& found) {
  if (offset >= end || kind_of(descriptor) != Kind::may_be_shared) return end;
  // The extents stand behind the header.
  alignas(fiemap) std::array<std::byte, kAnswerBytes> memory{};
  auto* const answer = reinterpret_cast<fiemap*>(memory.data());
  answer->fm_start = offset;
  answer->fm_length = end - offset;
  answer->fm_extent_count = kExtentsAtATime;
  while (::ioctl(descriptor, FS_IOC_FIEMAP, answer) != 0) {
    if (errno == EINTR) continue;
    if (errno != EOPNOTSUPP && errno != ENOTTY && errno != EINVAL)
      return FailedCall{errno, "cannot find the blocks of " + path};
    kind_.store(Kind::never_shared, std::memory_order_relaxed);
    return end;
  }
  const std::size_t count = std::min<std::size_t>(answer->fm_mapped_extents, kExtentsAtATime);
  std::uint64_t reached = offset;
  for (std::size_t i = 0; i < count; ++i) {
    fiemap_extent extent{};
    std::memcpy(&extent, memory.data() + sizeof(fiemap) + i * sizeof extent, sizeof extent);
    const std::uint64_t extent_end = extent.fe_logical + extent.fe_length;
    if ((extent.fe_flags & FIEMAP_EXTENT_SHARED) != 0) found(extent.fe_logical, extent_end);
    reached = std::max(reached, extent_end);
    if ((extent.fe_flags & FIEMAP_EXTENT_LAST) != 0) return end;
  }
  // With room for more there are no more.
  if (count < kExtentsAtATime) return end;
  return std::clamp(reached, offset + 1, end);
}

Status SharedBlocks::unshare(int descriptor, const std::string& path, std::uint64_t offset,
                             std::uint64_t end) {
  // The kernel gives no block of its own to a part of one that lies behind the end of the file.
  const std::uint64_t unit = unit_bytes(descriptor);
  offset = round_down(offset, unit);
  end = round_up(end, unit);
  while (offset < end) {
    std::vector<Range> shared;
    auto looked_to =
        find(descriptor, path, offset, end,
             [&](std::uint64_t start, std::uint64_t stop) { shared.push_back({start, stop}); });
    if (!looked_to.ok()) return looked_to.status();
    for (const Range& extent : shared) {
      const Range needed{std::max(extent.start, offset), std::min(extent.end, end)};
      const Range wide{std::max(extent.start, round_down(needed.start, kUnshareUnitBytes)),
                       std::min(extent.end, round_up(needed.end, kUnshareUnitBytes))};
      int failure = take_own_blocks(descriptor, wide);
      // On a nearly full disk there may be room for what is needed, and not for more.
      if (is_want_of_space(failure)) failure = take_own_blocks(descriptor, needed);
      if (failure == EOPNOTSUPP) {
        // Whatever writes here takes new blocks: only the free space can be looked at.
        kind_.store(Kind::never_in_place, std::memory_order_relaxed);
        return check_overwrite(descriptor, path, end - offset);
      }
      if (failure != 0) {
        return FailedCall{failure, "cannot give " + path +
                                       " blocks of its own in place of those that it "
                                       "shares with a copy (a reflink)"};
      }
    }
    offset = looked_to.value();
  }
  return {};
}

}  // namespace pawl
