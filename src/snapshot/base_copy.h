// Copies the bytes of one file over another: shared where the file system can (reflink), else one
// by one; holes stay holes.
#pragma once

#include "medium/status.h"

namespace pawl::snapshot {

enum class CopyKind { shared, copied };

// Makes the file `to` as `from` is.  Who writes to `from` meanwhile makes each byte the one of
// before or that of after, and the size one that the file had.  Attributes are not copied.
Result<CopyKind> copy_base(int from, int to);

}  // namespace pawl::snapshot
