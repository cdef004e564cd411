#include "wsp/process/changed_pages.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "medium/kernel_abi.h"
#include "wsp/process/layout.h"
#include "wsp/process/mapped_file.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kLookedAtBytesMax = 256ULL << 20;
constexpr std::uint64_t kPieceBytes = 64ULL << 20;
constexpr int kComparedPagesMax = 64;

// Of an entry of /proc/PID/pagemap, before Linux 6.7.
constexpr std::uint64_t kEntryIsThere = 1ULL << 63 | 1ULL << 62;
constexpr std::uint64_t kEntryIsFile = 1ULL << 61;

Status unknown() { return FailedCall{errno, "cannot read which pages the program changed"}; }

}  // namespace

ChangedPages::ChangedPages(pid_t process, MountTable& mounts, MayGoOn may_go_on)
    : process_(process),
      mounts_(mounts),
      page_map_(::open(fmt::format("/proc/{}/pagemap", process).c_str(), O_RDONLY | O_CLOEXEC)),
      left_to_compare_(kComparedPagesMax),
      left_bytes_(kLookedAtBytesMax),
      may_go_on_(std::move(may_go_on)) {}

Result<bool> ChangedPages::are_in(const MemoryArea& line) {
  if (line.bytes() > left_bytes_) return false;
  left_bytes_ -= line.bytes();
  line_ = line;
  file_.reset(-1);
  for (std::uint64_t at = line.start; at < line.end; at += kPieceBytes) {
    PAWL_TRY(may_go_on_());
    const std::uint64_t until = std::min<std::uint64_t>(line.end, at + kPieceBytes);
    const Result<bool> found = can_scan_ ? scan(at, until) : read(at, until);
    if (!found.ok() || found.value()) return found;
  }
  return false;
}

Result<bool> ChangedPages::scan(std::uint64_t start, std::uint64_t end) {
  kernel::PageRegion region;
  kernel::PagemapScanArgument scan;
  scan.size = sizeof(scan);
  scan.end = end;
  scan.vec = reinterpret_cast<std::uint64_t>(&region);
  scan.vec_len = 1;
  scan.max_pages = 1;
  scan.category_inverted = kernel::kPageIsFile;
  scan.category_mask = kernel::kPageIsFile;
  scan.category_anyof_mask = kernel::kPageIsPresent | kernel::kPageIsSwapped;
  scan.return_mask = kernel::kPageIsPresent;
  for (std::uint64_t at = start; at < end; at = region.start + kPageBytes) {
    scan.start = at;
    const int regions = ::ioctl(page_map_.get(), kernel::kPagemapScan, &scan);
    if (regions == 0) return false;
    if (regions < 0 && errno != ENOTTY) return unknown();
    if (regions < 0) {
      can_scan_ = false;
      return read(at, end);
    }
    if (!is_as_in_file(region.start)) return true;
  }
  return false;
}

// The mapped one itself, which takes CAP_CHECKPOINT_RESTORE.
void ChangedPages::open_file() {
  const Descriptor mapped(::open(link_to_mapped(process_, line_).c_str(), O_PATH | O_CLOEXEC));
  struct stat facts{};
  if (!mapped.valid() || ::fstat(mapped.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  if (!answers_by_itself(mounts_.find(mount_number_of(mapped.get())))) return;
  file_.reset(::open(link_to_descriptor(mapped.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

bool ChangedPages::is_as_in_file(std::uint64_t page) {
  if (left_to_compare_ == 0) return false;
  --left_to_compare_;
  if (!file_.valid()) open_file();
  std::array<std::byte, kPageBytes> is{};
  std::array<std::byte, kPageBytes> had{};
  const iovec into{is.data(), is.size()};
  const iovec from{reinterpret_cast<void*>(page), is.size()};  // NOLINT(performance-no-int-to-ptr)
  const auto offset = static_cast<off_t>(line_.offset + (page - line_.start));
  // Behind the file's end there are zeros.
  return file_.valid() && ::pread(file_.get(), had.data(), had.size(), offset) > 0 &&
         ::process_vm_readv(process_, &into, 1, &from, 1, 0) == ssize_t{kPageBytes} && is == had;
}

Result<bool> ChangedPages::read(std::uint64_t start, std::uint64_t end) {
  std::array<std::uint64_t, 4096> entries;
  for (std::uint64_t at = start; at < end; at += entries.size() * kPageBytes) {
    const std::uint64_t count = std::min((end - at) / kPageBytes, std::uint64_t{entries.size()});
    const auto bytes = static_cast<ssize_t>(count * sizeof(entries[0]));
    if (::pread(page_map_.get(), entries.data(), static_cast<std::size_t>(bytes),
                static_cast<off_t>(at / kPageBytes * sizeof(entries[0]))) != bytes)
      return unknown();
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool is_own = (entries[i] & kEntryIsThere) != 0 && (entries[i] & kEntryIsFile) == 0;
      if (is_own && !is_as_in_file(at + i * kPageBytes)) return true;
    }
  }
  return false;
}

}  // namespace pawl::wsp
