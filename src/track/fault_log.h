// The kernel's log of page faults, by perf software events: where a scan has to look.
//
// A page that a scan has armed cannot be stored to without a page fault, so the pages that faulted
// since are a superset of those that were stored to.  One log serves the process; each sampled
// address goes to the client that watches it and waits there until taken.
//
// The log is believed only where it is proven complete.  The kernel opens the page of a fault, then
// counts the fault, then samples it.  Some faults it counts and never samples: stores by the kernel
// (O_DIRECT, or any where perf may not look at it) or by another process, and those for which the
// ring was full.  Let U be the number of these; it only grows.
//   - Samples read first and faults counted then: counted - sampled is U, or more.
//   - Faults counted first, then every other thread seen blocked, then samples read: what had been
//     counted and would be sampled is sampled by then, so counted - sampled is U, or less: a bound.
//     The faults of the thread that looks count as well: it is not in flight then, either.
// While the former equals the bound, U is what it was when the bound was taken, and every fault
// since has been read.  Otherwise every client walks its ranges once, and the bound is taken anew
// before that.  Where it cannot be had (a thread that never blocks), each collect walks.
// A page may be open, and stored to without a fault, before the fault that opened it is counted.
// That fault is of a store to the page that is not over, which its collect need not see, or of a
// system call that stores nothing (futex, mlock).  A collect first waits until these are counted.
// docs/proofs/belief.pml is this argument, checked in every schedule.
//
// A store must not run while its page is being collected; a failing compare-and-swap faults as a
// store does, and counts as one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "medium/status.h"
#include "track/fault_counts.h"

namespace pawl {

inline constexpr std::size_t kFaultLogDescriptorsMax = 256;
// Beyond this many waiting pages a walk is cheaper than the list.
inline constexpr std::size_t kFaultLogPagesMax = std::size_t{1} << 17;

class FaultLog;

// One watcher's part of the log.  All functions may be called from any thread.
class FaultLogClient {
 public:
  // Joins the process's log, starting it if need be.  Fails where perf is not permitted or the
  // process has too many threads and processors for kFaultLogDescriptorsMax.  `whose` faults it
  // counts: with FaultsOf::process it misses what other processes store.
  static Result<std::unique_ptr<FaultLogClient>> join(FaultsOf whose);
  ~FaultLogClient();
  FaultLogClient(const FaultLogClient&) = delete;
  FaultLogClient& operator=(const FaultLogClient&) = delete;

  void add_range(std::uint64_t first, std::uint64_t end);
  void remove_range(std::uint64_t first, std::uint64_t end);

  // Reads the log.  True: `pages` now also holds every page of the ranges that may have been stored
  // to since the last call.  False: the log does not know; walk the ranges.
  bool take(std::vector<std::uint64_t>& pages);

 private:
  explicit FaultLogClient(FaultsOf whose) : whose_(whose) {}
  friend class FaultLog;

  const FaultsOf whose_;
  FaultLog* log_ = nullptr;  // outlives all clients
  std::vector<std::uint64_t> pages_;
  bool knows_ = false;  // walked since the log was last not believed
};

// Why the log cannot be had here; success when it can.
Status probe_fault_log();

}  // namespace pawl
