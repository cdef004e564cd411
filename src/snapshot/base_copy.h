// Copies the bytes of one file over another: shared where the file system can (reflink), else one
// by one; holes stay holes.
#pragma once

#include <cstdint>

#include "medium/status.h"

namespace pawl::snapshot {

enum class CopyKind { shared, copied };

// Makes the file `to` as `from` is.  Who writes to `from` meanwhile makes each byte the one of
// before or that of after, and the size one that the file had.  Attributes are not copied.
// EFBIG: blocks cannot be shared, and the file has more than copied_bytes_max.
Result<CopyKind> copy_base(int from, int to, std::uint64_t copied_bytes_max);

}  // namespace pawl::snapshot
