// The kernel's own record of written pages: userfaultfd's asynchronous write-protection, read and
// renewed by PAGEMAP_SCAN.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "medium/descriptor.h"
#include "medium/kernel_abi.h"
#include "medium/page_runs.h"
#include "medium/status.h"

namespace pawl {

// Any thread may call any function; calls on the same pages are ordered by the caller.  Belongs to
// the process that opened it: its descriptors speak of that process's memory even after a fork.
class WriteWatch {
 public:
  // EPERM, ENOSYS or EINVAL with what to do about it, where the kernel or its settings refuse.
  static Result<std::unique_ptr<WriteWatch>> open();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  // Starts and stops recording.  Pages are addresses divided by kPageBytes.
  Status add(std::uint64_t first, std::uint64_t end) const;
  Status remove(std::uint64_t first, std::uint64_t end) const;

  // EIO when the program closed the number by which the kernel is asked: it may be that of another
  // process's memory by now, of which the kernel would tell.  0.3 us: before each collect.
  Status check_open() const;
  // EIO when stores to this page, which was added, are not recorded any more, nor fault: so it is
  // once the program has closed the descriptor, with all pages.
  Status check(std::uint64_t page) const;

  // Adds to `taken` the written pages of [first, end) and arms them again, each atomically.  On
  // failure `first` is moved past what was done; it checks all of the range.  A page that was only
  // read may be taken, once.
  Status take(std::uint64_t& first, std::uint64_t end, PageRuns& taken) const;
  // Adds to `found` the pages of [first, end) that are not the file's: its pages were not stored
  // to. The zero page may be what became of one that was (KSM, a huge page that was split).  Arms
  // nothing.
  Status find_not_of_file(std::uint64_t first, std::uint64_t end, PageRuns& found) const;
  // Disarms the armed pages of [first, end) that are not in memory, which it adds to `disarmed`:
  // of a page of the file that is a marker in the page table, which goes.
  Status disarm_absent(std::uint64_t first, std::uint64_t end, PageRuns& disarmed) const;

 private:
  Status scan(kernel::PagemapScanArgument argument, std::uint64_t& first, std::uint64_t end,
              PageRuns& pages) const;

  WriteWatch(Descriptor userfault, Descriptor pagemap)
      : userfault_(std::move(userfault)), pagemap_(std::move(pagemap)) {}

  Status check_userfault() const;

  const Descriptor userfault_;
  const Descriptor pagemap_;
};

}  // namespace pawl
