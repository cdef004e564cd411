#include "track/write_watch.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "medium/kernel_abi.h"
#include "medium/medium.h"

namespace pawl {

namespace {

constexpr std::size_t kRegionsMax =
    256;  // reported by one system call; it is called again for more

std::string userfault_advice(int error_number) {
  switch (error_number) {
    case EPERM:
      return "userfaultfd is not permitted here (a container's seccomp filter, or "
             "vm.unprivileged_userfaultfd); allow it or use the fault tracker";
    case ENOSYS:
      return "this kernel has no userfaultfd; use the fault tracker";
    case EINVAL:
      return "this kernel lacks userfaultfd WP_ASYNC (Linux 6.7); use the fault tracker";
    default:
      return "userfaultfd";
  }
}

// Where descriptors or memory are short, that is neither the kernel's fault nor a sandbox's.
FailedCall unavailable(int error_number, std::string what) {
  const bool is_short = error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
  return {error_number, std::move(what),
          is_short ? PAWL_ERROR_NONE : PAWL_ERROR_TRACKER_UNAVAILABLE};
}

// Async write-protection never hands a fault to user space, so the restriction to user-mode faults,
// which an unprivileged process must accept, costs nothing.
int open_userfaultfd() {
  const int flags = O_CLOEXEC | O_NONBLOCK;
  long descriptor = syscall(SYS_userfaultfd, flags);
  if (descriptor < 0) {
    descriptor = syscall(SYS_userfaultfd, flags | static_cast<int>(kernel::kUffdUserModeOnly));
  }
  return static_cast<int>(descriptor);
}

// False: the kernel knows no scan, or a sandbox refuses the call.
bool scans_nothing(const Descriptor& pagemap) {
  kernel::PagemapScanArgument nothing;
  nothing.size = sizeof nothing;
  nothing.return_mask = kernel::kPageIsWritten;
  nothing.category_mask = kernel::kPageIsWritten;
  return ioctl(pagemap.get(), kernel::kPagemapScan, &nothing) >= 0;
}

// EIO is final: what was stored since the last commit can no longer be found.
Status lost_watch(const char* kind, const Descriptor& descriptor) {
  return Status::failure(EIO, PAWL_ERROR_STORES_UNSEEN,
                         "stores into the mapping are no longer recorded: the program closed "
                         "the " +
                             std::string(kind) + " descriptor (number " +
                             std::to_string(descriptor.get()) +
                             ") by which Pawl has them recorded, or mapped something else "
                             "there past libpawl. Close the program's own descriptors only, "
                             "or all at once with closefrom() or close_range()");
}

}  // namespace

Result<std::unique_ptr<WriteWatch>> WriteWatch::open() {
  Descriptor userfault(open_userfaultfd());
  if (!userfault.valid()) return unavailable(errno, userfault_advice(errno));

  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kernel::kUffdFeatureWpAsync;
  if (ioctl(userfault.get(), UFFDIO_API, &api) != 0)
    return unavailable(errno, userfault_advice(errno));

  Descriptor pagemap(::open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!pagemap.valid())
    return unavailable(errno, "cannot open /proc/self/pagemap (is /proc mounted?)");
  if (!scans_nothing(pagemap))
    return unavailable(errno, "this kernel lacks PAGEMAP_SCAN (Linux 6.7); use the fault tracker");
  return std::unique_ptr<WriteWatch>(new WriteWatch(std::move(userfault), std::move(pagemap)));
}

Status WriteWatch::check_open() const {
  return pagemap_.state() == OpenFile::State::gone ? lost_watch("pagemap", pagemap_) : Status{};
}

Status WriteWatch::check_userfault() const {
  return userfault_.state() == OpenFile::State::gone ? lost_watch("userfaultfd", userfault_)
                                                     : Status{};
}

Status WriteWatch::add(std::uint64_t first, std::uint64_t end) const {
  uffdio_register request{};
  request.range = {first * kPageBytes, (end - first) * kPageBytes};
  request.mode = UFFDIO_REGISTER_MODE_WP;
  PAWL_TRY(check_userfault());
  if (ioctl(userfault_.get(), UFFDIO_REGISTER, &request) != 0) {
    return FailedCall{errno, "cannot watch memory with userfaultfd; use the fault tracker"};
  }
  return {};
}

Status WriteWatch::remove(std::uint64_t first, std::uint64_t end) const {
  uffdio_range range{first * kPageBytes, (end - first) * kPageBytes};
  PAWL_TRY(check_userfault());
  if (ioctl(userfault_.get(), UFFDIO_UNREGISTER, &range) != 0) {
    return FailedCall{errno, "cannot stop watching memory with userfaultfd"};
  }
  return {};
}

// Walks [first, end) in as many calls as the bounded vector asks for.
Status WriteWatch::scan(kernel::PagemapScanArgument argument, std::uint64_t& first,
                        std::uint64_t end, PageRuns& pages) const {
  std::array<kernel::PageRegion, kRegionsMax> regions;
  if (first >= end) return {};
  argument.size = sizeof argument;
  argument.vec = reinterpret_cast<std::uint64_t>(regions.data());
  // No more than can be needed: the kernel allocates as many.
  argument.vec_len = std::min<std::uint64_t>(regions.size(), end - first);
  while (first < end) {
    argument.start = first * kPageBytes;
    argument.end = end * kPageBytes;
    const int count = ioctl(pagemap_.get(), kernel::kPagemapScan, &argument);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EPERM) {
        if (scans_nothing(pagemap_)) return lost_watch("userfaultfd", userfault_);
        return FailedCall{
            EPERM,
            "PAGEMAP_SCAN of the mapping, which a sandbox of the program refuses: let "
            "ioctl() pass"};
      }
      if (errno == EBADF || errno == ENOTTY) return lost_watch("pagemap", pagemap_);
      return FailedCall{errno, "PAGEMAP_SCAN of the mapping"};
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      pages.add(regions[i].start / kPageBytes, (regions[i].end - regions[i].start) / kPageBytes);
    }
    PAWL_ASSERT(argument.walk_end > argument.start && argument.walk_end <= argument.end);
    first = argument.walk_end / kPageBytes;
  }
  return {};
}

Status WriteWatch::check(std::uint64_t page) const {
  kernel::PagemapScanArgument argument;
  argument.flags = kernel::kPmScanCheckWpAsync;
  argument.category_mask = kernel::kPageIsWritten;
  argument.return_mask = kernel::kPageIsWritten;
  PageRuns written;
  return scan(argument, page, page + 1, written);
}

Status WriteWatch::take(std::uint64_t& first, std::uint64_t end, PageRuns& taken) const {
  kernel::PagemapScanArgument argument;
  argument.flags = kernel::kPmScanWpMatching | kernel::kPmScanCheckWpAsync;
  argument.category_mask = kernel::kPageIsWritten;
  argument.category_anyof_mask = kernel::kPageIsPresent | kernel::kPageIsSwapped;
  argument.return_mask = kernel::kPageIsWritten;
  return scan(argument, first, end, taken);
}

Status WriteWatch::find_not_of_file(std::uint64_t first, std::uint64_t end, PageRuns& found) const {
  kernel::PagemapScanArgument argument;
  argument.category_inverted = kernel::kPageIsFile;
  argument.category_mask = kernel::kPageIsFile;
  argument.category_anyof_mask = kernel::kPageIsPresent | kernel::kPageIsSwapped;
  argument.return_mask = kernel::kPageIsPresent | kernel::kPageIsSwapped;
  return scan(argument, first, end, found);
}

Status WriteWatch::disarm_absent(std::uint64_t first, std::uint64_t end, PageRuns& disarmed) const {
  kernel::PagemapScanArgument argument;
  argument.category_inverted = kernel::kPageIsWritten;
  argument.category_mask = kernel::kPageIsWritten | kernel::kPageIsSwapped;
  argument.return_mask = kernel::kPageIsSwapped;
  PAWL_TRY(scan(argument, first, end, disarmed));
  PAWL_TRY(check_userfault());
  for (const PageRun& run : disarmed.runs()) {
    uffdio_writeprotect request{};
    request.range = {run.first * kPageBytes, run.count * kPageBytes};
    if (ioctl(userfault_.get(), UFFDIO_WRITEPROTECT, &request) != 0)
      return FailedCall{errno, "cannot disarm reclaimed pages with userfaultfd"};
  }
  return {};
}

}  // namespace pawl
