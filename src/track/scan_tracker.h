// Tracks with the kernel's own record of written pages: a first store costs one page fault and no
// signal, system calls store as they always do, and a collect costs a scan.  Over large mappings
// the scan looks only where the fault log says that there was a fault.
#pragma once

#include <memory>

#include "track/fault_counts.h"
#include "track/tracker.h"

namespace pawl {

// From this size on, in bytes watched by one tracker, the fault log is asked.  Measured: to ask
// costs 15 us, a walk of 64 MiB 32 us; and on a machine where other processes fault the walk comes
// on top.
inline constexpr std::uint64_t kLocatedScanBytesMin = std::uint64_t{64} << 20;

enum class ScanMode {
  automatic,  // located from kLocatedScanBytesMin on, where the fault log can be had
  flat,       // always walks the whole range
  located,    // always asks the log; making the tracker fails where there is none
};

// make_scan_tracker() is this with ScanMode::automatic; the others are for tests and measurements.
Result<std::unique_ptr<Tracker>> make_scan_tracker_with(ScanMode mode,
                                                        FaultsOf whose = FaultsOf::machine);

}  // namespace pawl
