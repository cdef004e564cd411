#include "track/fault_log.h"
#include "track/tracker.h"
#include "track/write_watch.h"

namespace pawl {

TrackerSupport probe_trackers() {
  TrackerSupport support;
  const Status scan = WriteWatch::open().status();
  support.scan = scan.ok();
  support.scan_reason = scan.text();
  const Status fault_log = probe_fault_log();
  support.fault_log = fault_log.ok();
  support.fault_log_reason = fault_log.text();
  return support;
}

}  // namespace pawl
