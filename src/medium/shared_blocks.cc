#include "medium/shared_blocks.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <vector>

#include "medium/extents.h"

namespace pawl {
namespace {

constexpr std::uint64_t kUnshareUnitBytes = std::uint64_t{128} << 10;
// For what a copy-on-write file system writes of its own.
constexpr std::uint64_t kFreeBytesMin = std::uint64_t{1} << 20;
// Which not all kernels' headers have.
constexpr long kBcachefsMagic = 0xca451a4e;
constexpr long kZfsMagic = 0x2fc12fc1;
constexpr long kNilfsMagic = 0x3434;

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
  auto looked_to = visit_extents(descriptor, path, offset, end, [&](const Extent& extent) {
    if (extent.is_shared) found(extent.start, extent.end);
  });
  if (looked_to.status().error_number() != EOPNOTSUPP) return looked_to;
  kind_.store(Kind::never_shared, std::memory_order_relaxed);
  return end;
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
