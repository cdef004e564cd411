// The C border of snapshots.

#include "fase/closed_file.h"
#include "mapping/border.h"
#include "pawl/pawl.h"
#include "snapshot/committed_copy.h"

extern "C" PAWL_PUBLIC int pawl_snapshot(const char* path, const char* to, int flags) {
  return pawl::finish([&]() -> pawl::Status {
    if (path == nullptr || to == nullptr) return pawl::invalid("path and to must not be NULL");
    if ((flags & ~PAWL_SNAPSHOT_REPLACE) != 0)
      return pawl::invalid("flags must be 0 or PAWL_SNAPSHOT_REPLACE");
    return pawl::snapshot::make_snapshot(path, to, (flags & PAWL_SNAPSHOT_REPLACE) != 0,
                                         pawl::fase::check_is_finished)
        .status();
  });
}
