#include "medium/extents.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace pawl {
namespace {

constexpr std::size_t kExtentsAtATime = 16;
constexpr std::size_t kAnswerBytes = sizeof(fiemap) + kExtentsAtATime * sizeof(fiemap_extent);

}  // namespace

Result<std::uint64_t> visit_extents(int descriptor, const std::string& path, std::uint64_t offset,
                                    std::uint64_t end,
                                    const std::function<void(const Extent&)>& visit) {
  // The extents stand behind the header.
  alignas(fiemap) std::array<std::byte, kAnswerBytes> memory{};
  auto* const answer = reinterpret_cast<fiemap*>(memory.data());
  answer->fm_start = offset;
  answer->fm_length = end - offset;
  answer->fm_extent_count = kExtentsAtATime;
  while (::ioctl(descriptor, FS_IOC_FIEMAP, answer) != 0) {
    if (errno == EINTR) continue;
    const bool is_unknown = errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL;
    const bool cannot_tell = is_unknown || errno == ENOSYS || errno == EPERM;  // of a sandbox
    return FailedCall{cannot_tell ? EOPNOTSUPP : errno, "cannot find the blocks of " + path};
  }
  const std::size_t count = std::min<std::size_t>(answer->fm_mapped_extents, kExtentsAtATime);
  std::uint64_t reached = offset;
  for (std::size_t i = 0; i < count; ++i) {
    fiemap_extent found{};
    std::memcpy(&found, memory.data() + sizeof(fiemap) + i * sizeof found, sizeof found);
    const Extent extent{.start = found.fe_logical,
                        .end = found.fe_logical + found.fe_length,
                        .is_shared = (found.fe_flags & FIEMAP_EXTENT_SHARED) != 0};
    visit(extent);
    reached = std::max(reached, extent.end);
    if ((found.fe_flags & FIEMAP_EXTENT_LAST) != 0) return end;
  }
  // With room for more there are no more.
  if (count < kExtentsAtATime) return end;
  return std::clamp(reached, offset + 1, end);
}

}  // namespace pawl
