#include "track/inherited_ranges.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "track/fault_table.h"
#include "track/segv_handler.h"

namespace pawl {
namespace {

struct InheritedRange {
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;
  int protection = 0;
  const std::string* message = nullptr;  // stays for the life of the process
  std::atomic<bool> is_open{false};
};

std::array<InheritedRange, kInheritedRangesMax> inherited_ranges;

void* address_of(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

void protect_inherited(InheritedRange& range) {
  const bool done =
      ::mprotect(address_of(range.first), range.end - range.first, armed(range.protection)) == 0;
  range.is_open.store(!done);
}

// Two threads may store at once: both go on, and one speaks.
bool open_inherited(InheritedRange& range) {
  if (::mprotect(address_of(range.first), range.end - range.first, range.protection) != 0)
    return false;
  if (!range.is_open.exchange(true)) {
    // Past the preload library's own write().
    [[maybe_unused]] const long said =
        ::syscall(SYS_write, STDERR_FILENO, range.message->data(), range.message->size());
  }
  return true;
}

}  // namespace

constinit std::atomic<std::size_t> InheritedRanges::count_{0};

void InheritedRanges::watch(char* address, std::size_t length, int protection,
                            std::string message) {
  const std::size_t number = count_.load();
  if (number == kInheritedRangesMax || length == 0 || (protection & PROT_WRITE) == 0) return;
  InheritedRange& range = inherited_ranges[number];
  range.first = reinterpret_cast<std::uintptr_t>(address);
  range.end = range.first + length;
  range.protection = protection;
  range.message = new std::string(std::move(message));
  count_.store(number + 1);
  ensure_segv_handler();
  protect_inherited(range);
}

void InheritedRanges::watch_again() {
  for (std::size_t i = 0; i < count_.load(); ++i) protect_inherited(inherited_ranges[i]);
}

bool InheritedRanges::open_for_store(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (std::size_t i = 0; i < count_.load(); ++i) {
    if (at >= inherited_ranges[i].first && at < inherited_ranges[i].end)
      return open_inherited(inherited_ranges[i]);
  }
  return false;
}

void InheritedRanges::open_range(const void* address, std::size_t length) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const int error_number = errno;
  for (std::size_t i = 0; i < count_.load(); ++i) {
    InheritedRange& range = inherited_ranges[i];
    if (range.is_open.load() || first >= range.end) continue;
    // A length beyond the end of the address space is the system call's to refuse.
    if (first >= range.first || length > range.first - first) [[maybe_unused]]
      const bool opened = open_inherited(range);
  }
  errno = error_number;
}

}  // namespace pawl
