// Reading and writing as the program does it, for the parts of the face that are asked to move
// bytes on its behalf: through the working view where the descriptor's file is tracked.
#pragma once

#include "preload/interpose.h"

#include <sys/types.h>

#include <cstddef>

namespace pawl::preload {

// Whether the call is a cancellation point where it is the kernel's.
enum class Cancellation : bool { ignored, possible };

// pread(2) and pwrite(2), or read(2) and write(2) when offset is null.
ssize_t read_bytes(int descriptor, void* buffer, std::size_t count, const off_t* offset,
                   Cancellation cancellation = Cancellation::possible);
ssize_t write_bytes(int descriptor, const void* buffer, std::size_t count, const off_t* offset,
                    Cancellation cancellation = Cancellation::possible);

}  // namespace pawl::preload
