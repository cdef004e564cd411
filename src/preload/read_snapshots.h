// Reading a file that another process has mapped atomically: the reader gets a copy of it, as its
// last commit left it when it was opened.  Callers are inside().
#pragma once

#include "preload/interpose.h"

#include <functional>

#include "medium/status.h"
#include "preload/named_files.h"

namespace pawl::preload {

// Bytes that are copied where the file system cannot share blocks.
inline constexpr std::uint64_t kReadCopyBytesMax = std::uint64_t{1} << 30;

// The number of a copy, where the file that is looked up matches a pattern and has a writer that is
// not this process and `flags` (of open(2)) ask for reading only; -1: it is to be opened as any.
// The copy's position is 0, and it has the flags that `flags` name.  The file itself is not opened
// by the program's number: to close that would drop the program's fcntl() locks.  EFBIG: the file
// is larger than kReadCopyBytesMax, and its blocks cannot be shared.
Result<int> open_committed(const std::function<Result<std::optional<NamedFile>>()>& look_up_file,
                           int flags);

// Whether open_committed() would make a copy of the file, if it is opened for reading.
bool is_written_elsewhere(const NamedFile& file);

}  // namespace pawl::preload
