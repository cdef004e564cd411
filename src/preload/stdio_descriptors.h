// Descriptors beneath stdio streams.  The C library reads and writes them from within itself, past
// the face, so a file cannot be a stream and a Pawl mapping at once.
#pragma once

#include "preload/interpose.h"

#include "medium/status.h"

namespace pawl::preload {

// Lock-free.
bool is_stdio(int descriptor);
void set_stdio(int descriptor, bool value);
// Whether a stream uses the number, open or not: one that is known, or a standard stream.
bool has_stream(int number);

// Ends the descriptor's part in a tracked file, and as that of a stream; the caller closes it.
Status let_go(int descriptor);

}  // namespace pawl::preload
