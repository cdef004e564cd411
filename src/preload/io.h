// Reading and writing as the program does it, for the parts of the face that are asked to move
// bytes on its behalf: through the working view where the descriptor's file is tracked.
#pragma once

#include "preload/interpose.h"

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace pawl::preload {

// Whether the call is a cancellation point where it is the kernel's.
enum class Cancellation : bool { ignored, possible };

// pread(2) and pwrite(2), or read(2) and write(2) when offset is null.
ssize_t read_bytes(int descriptor, void* buffer, std::size_t count, const off_t* offset,
                   Cancellation cancellation = Cancellation::possible);
ssize_t write_bytes(int descriptor, const void* buffer, std::size_t count, const off_t* offset,
                    Cancellation cancellation = Cancellation::possible);

// write(2) or pwrite(2) of bytes that are taken from elsewhere and cannot be given back: what would
// make the write fail is found before.  `available` says how many there are, `take` takes them
// without waiting.  The descriptor does not append.  Where its file is not tracked the call is
// `otherwise`.
struct Taking {
  std::function<std::size_t()> available;
  std::function<ssize_t(char* buffer, std::size_t count)> take;
  std::function<ssize_t()> otherwise;
};
ssize_t write_taken(int descriptor, std::size_t count, const off_t* offset, const Taking& taking);

}  // namespace pawl::preload
