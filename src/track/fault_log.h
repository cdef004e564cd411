// The kernel's log of page faults, by perf software events: where a scan has to look.
//
// A page that a scan has armed cannot be stored to without a page fault, so the pages that faulted
// since are a superset of those that were stored to.  One log serves the process; each sampled
// address goes to the client that watches it and waits there until taken.
//
// The log is believed only where it can be proven complete.  The kernel counts every fault of the
// process (getrusage) before it samples it.  So as long as
//     faults counted - samples read = the same number as at the baseline,
// every fault since the baseline has been read.  Anything else (a full ring, a fault without a
// sample such as those of O_DIRECT reads, a thread that slipped through) makes the difference grow,
// the log is not believed, and every client has to walk its ranges once.
//
// What this cannot see, and a walk of the whole range can:
//   - stores by another process into this one's memory (ptrace, process_vm_writev), or by a child
//     that shares its memory without being its thread (vfork): their faults count there.
//   - a failing compare-and-swap faults as a store does.  Like a store it must not run while its
//     page is being committed.
// The baseline itself is taken from a difference that was the same before and after the walk, so
// that a fault just then between being counted and being sampled is not taken for a lost one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl {

inline constexpr std::size_t kFaultLogDescriptorsMax = 256;
// Beyond this many waiting pages a walk is cheaper than the list.
inline constexpr std::size_t kFaultLogPagesMax = std::size_t{1} << 17;

class FaultLog;

// One watcher's part of the log.  All functions may be called from any thread.
class FaultLogClient {
 public:
  // Joins the process's log, starting it if need be.  Fails where perf is not permitted or the
  // process has too many threads and processors for kFaultLogDescriptorsMax.
  static Result<std::unique_ptr<FaultLogClient>> join();
  ~FaultLogClient();
  FaultLogClient(const FaultLogClient&) = delete;
  FaultLogClient& operator=(const FaultLogClient&) = delete;

  void add_range(std::uint64_t first, std::uint64_t end);
  void remove_range(std::uint64_t first, std::uint64_t end);

  // Reads the log.  True: `pages` now also holds every page of the ranges that may have been stored
  // to since the last call.  False: the log does not know; walk the ranges, then call walked().
  bool take(std::vector<std::uint64_t>& pages);
  // After a walk that began after take() had returned false: makes the log believable again from
  // that take() on, if nothing went missing meanwhile.
  void walked();

 private:
  FaultLogClient() = default;
  friend class FaultLog;

  FaultLog* log_ = nullptr;  // outlives all clients
  std::vector<std::uint64_t> pages_;
  bool knows_ = false;
};

// Why the log cannot be had here; success when it can.
Status probe_fault_log();

}  // namespace pawl
