// Reading a file that another process has mapped atomically: the reader gets a copy of it, as its
// last commit left it when it was opened.  Callers are inside().
#pragma once

#include "preload/interpose.h"

#include "preload/named_files.h"

namespace pawl::preload {

// Bytes that are copied where the file system cannot share blocks.
inline constexpr std::uint64_t kReadCopyBytesMax = std::uint64_t{1} << 30;

// Where `descriptor` was just opened for reading only, on a file that matches a pattern and has a
// writer that is not this process: makes the same number lead to a copy, which goes with the last
// descriptor of it; or, where that would drop the program's fcntl() locks and the number may be
// another one, that.  Its position is 0, and it has the flags that `flags` (of open(2)) name.
// Returns the number.  EFBIG: the file is larger than kReadCopyBytesMax, and its blocks cannot be
// shared.
enum class Number { stays, may_be_another };
Result<int> show_committed(int descriptor, const NamedFile& file, int flags, Number number);

// Whether show_committed() would show a copy of the file, if it is opened for reading.
bool is_written_elsewhere(const NamedFile& file);

}  // namespace pawl::preload
