#include "wsp/process/changed_pages.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "wsp/process/layout.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kLookedAtBytesMax = 256ULL << 20;
constexpr std::uint64_t kPieceBytes = 64ULL << 20;

// As PAGEMAP_SCAN takes it, which Debian 12's <linux/fs.h> does not name.
struct Region {
  std::uint64_t start, end, categories;
};
struct Scan {
  std::uint64_t size, flags, start, end, walk_end, vector, vector_count, pages_max,
      category_inverted, category_mask, category_any_of, return_mask;
};
constexpr unsigned long kScan = _IOWR('f', 16, Scan);
constexpr std::uint64_t kIsFile = 1 << 2;
constexpr std::uint64_t kIsPresent = 1 << 3;
constexpr std::uint64_t kIsSwapped = 1 << 4;

// The same of an entry of /proc/PID/pagemap.
constexpr std::uint64_t kEntryIsThere = 1ULL << 63 | 1ULL << 62;
constexpr std::uint64_t kEntryIsFile = 1ULL << 61;

Status unknown() { return FailedCall{errno, "cannot read which pages the program changed"}; }

}  // namespace

ChangedPages::ChangedPages(pid_t process, MayGoOn may_go_on)
    : page_map_(::open(fmt::format("/proc/{}/pagemap", process).c_str(), O_RDONLY | O_CLOEXEC)),
      left_bytes_(kLookedAtBytesMax),
      may_go_on_(std::move(may_go_on)) {}

Result<bool> ChangedPages::are_in(std::uint64_t start, std::uint64_t end) {
  if (end - start > left_bytes_) return false;
  left_bytes_ -= end - start;
  for (std::uint64_t at = start; at < end; at += kPieceBytes) {
    PAWL_TRY(may_go_on_());
    const std::uint64_t until = std::min(end, at + kPieceBytes);
    const Result<bool> found = can_scan_ ? scan(at, until) : read(at, until);
    if (!found.ok() || found.value()) return found;
  }
  return false;
}

Result<bool> ChangedPages::scan(std::uint64_t start, std::uint64_t end) {
  Region region{};
  Scan scan{};
  scan.size = sizeof(scan);
  scan.start = start;
  scan.end = end;
  scan.vector = reinterpret_cast<std::uint64_t>(&region);
  scan.vector_count = 1;
  scan.pages_max = 1;
  scan.category_inverted = kIsFile;
  scan.category_mask = kIsFile;
  scan.category_any_of = kIsPresent | kIsSwapped;
  scan.return_mask = kIsPresent;
  const int regions = ::ioctl(page_map_.get(), kScan, &scan);
  if (regions >= 0) return regions > 0;
  if (errno != ENOTTY) return unknown();
  can_scan_ = false;
  return read(start, end);
}

Result<bool> ChangedPages::read(std::uint64_t start, std::uint64_t end) const {
  std::array<std::uint64_t, 4096> entries;
  for (std::uint64_t at = start; at < end; at += entries.size() * kPageBytes) {
    const std::uint64_t count = std::min((end - at) / kPageBytes, std::uint64_t{entries.size()});
    const auto bytes = static_cast<ssize_t>(count * sizeof(entries[0]));
    if (::pread(page_map_.get(), entries.data(), static_cast<std::size_t>(bytes),
                static_cast<off_t>(at / kPageBytes * sizeof(entries[0]))) != bytes)
      return unknown();
    if (std::any_of(entries.begin(), entries.begin() + count, [](std::uint64_t entry) {
          return (entry & kEntryIsThere) != 0 && (entry & kEntryIsFile) == 0;
        }))
      return true;
  }
  return false;
}

}  // namespace pawl::wsp
