// Kernel interfaces that Debian 12's headers do not have yet.
#pragma once

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace pawl::kernel {

// linux/userfaultfd.h, since Linux 6.7: a store to a write-protected page lifts the protection and
// goes on, and nobody waits for a handler.
inline constexpr std::uint64_t kUffdFeatureWpAsync = std::uint64_t{1} << 15;
inline constexpr unsigned kUffdUserModeOnly = 1;

// linux/fs.h, since Linux 6.7.
struct PageRegion {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t categories = 0;
};

struct PagemapScanArgument {
  std::uint64_t size = 0;
  std::uint64_t flags = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t walk_end = 0;
  std::uint64_t vec = 0;
  std::uint64_t vec_len = 0;
  std::uint64_t max_pages = 0;
  std::uint64_t category_inverted = 0;
  std::uint64_t category_mask = 0;
  std::uint64_t category_anyof_mask = 0;
  std::uint64_t return_mask = 0;
};
static_assert(sizeof(PagemapScanArgument) == 96);

inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScanArgument);

inline constexpr std::uint64_t kPmScanWpMatching = 1 << 0;
inline constexpr std::uint64_t kPmScanCheckWpAsync = 1 << 1;

inline constexpr std::uint64_t kPageIsWritten = 1 << 1;
inline constexpr std::uint64_t kPageIsFile = 1 << 2;
inline constexpr std::uint64_t kPageIsPresent = 1 << 3;
inline constexpr std::uint64_t kPageIsSwapped = 1 << 4;

}  // namespace pawl::kernel
