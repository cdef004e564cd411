#include "medium/own_process.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>

#include "medium/law.h"
#include "medium/medium.h"

namespace pawl {
namespace {

// The kernel gives a child zeros in its place; it cannot be missed, nor come too late.
struct OfThisMemory {
  std::atomic<std::uint64_t> number{0};
  ThreadCounts threads;
};

bool is_wiped = false;

OfThisMemory* wiped_in_children() {
  static auto* const facts = [] {
    // By number: the preload library asks under the lock of its memory, which its mmap() may need.
    const long page = ::syscall(SYS_mmap, nullptr, kPageBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Without it (Linux before 4.14, or no memory) the process's number alone tells children apart.
    static OfThisMemory never_wiped;
    if (page == -1) return &never_wiped;
    is_wiped = ::syscall(SYS_madvise, page, kPageBytes, MADV_WIPEONFORK) == 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return new (reinterpret_cast<void*>(page)) OfThisMemory;
  }();
  return facts;
}

// Copied into a child: what that counts on from is more than all that its parents had.
std::atomic<std::uint64_t> last_number{0};

}  // namespace

std::uint64_t number_of_memory() {
  auto& number = wiped_in_children()->number;
  std::uint64_t present = number.load(std::memory_order_acquire);
  if (present != 0) return present;
  const std::uint64_t next = last_number.fetch_add(1) + 1;
  return number.compare_exchange_strong(present, next) ? next : present;
}

ThreadCounts* thread_counts() {
  auto* const facts = wiped_in_children();
  return is_wiped ? &facts->threads : nullptr;
}

OwnProcess::OwnProcess() : number_(number_of_memory()), process_(::getpid()) {}

bool OwnProcess::is_this() const {
  if (is_broken(Law::child_may_not_commit)) return true;
  return has_this_memory() && ::getpid() == process_;
}

}  // namespace pawl
