#include "medium/readable_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "medium/medium.h"

namespace pawl {
namespace {

// The kernel's signal set.  It is read whole before the kernel finds that it is to do nothing with
// it.  process_vm_readv(2) would ask the same, but is refused in many a container.
constexpr std::size_t kSignalSetBytes = 8;
constexpr int kNoSuchChange = -1;

bool can_be_read(std::uintptr_t at) {
  const std::uintptr_t set = at / kSignalSetBytes * kSignalSetBytes;
  if (set == 0) return false;  // for the kernel no set at all
  return ::syscall(SYS_rt_sigprocmask, kNoSuchChange, set, nullptr, kSignalSetBytes) == 0 ||
         errno != EFAULT;
}

}  // namespace

bool is_readable(const void* address, std::size_t length) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  if (length == 0) return true;
  if (first + (length - 1) < first) return false;
  const std::uintptr_t last = first + (length - 1);
  const int errno_before = errno;
  bool is_all = can_be_read(first);
  for (std::uintptr_t page = first / kPageBytes + 1; is_all && page <= last / kPageBytes; ++page)
    is_all = can_be_read(page * kPageBytes);
  errno = errno_before;
  return is_all;
}

bool is_readable_text(const char* text) {
  for (std::size_t at = 0; at < PATH_MAX;) {
    const std::size_t room = kPageBytes - reinterpret_cast<std::uintptr_t>(text + at) % kPageBytes;
    if (!is_readable(text + at, room)) return false;
    if (std::memchr(text + at, 0, room) != nullptr) return true;
    at += room;
  }
  return true;
}

}  // namespace pawl
