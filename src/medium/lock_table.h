// The kernel's table of locks (/proc/locks, proc_locks(5)), read whole though it is handed out in
// pieces: a piece is one moment of it, but the next one begins at a number, and locks before that
// may have been given up meanwhile, so that others are passed over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl {

// Its lines, less their numbers.  Every lock that was there all the time is among them, also those
// of other users and containers; some that came or went, too, and many twice.
// ENOTSUP: the kernel does not say.  EBUSY: it changes faster than it can be read.  Any thread.
Result<std::vector<std::string>> read_lock_table();

// The lines of what two descriptors read, in pieces, one after the other in turn, of which one was
// half a piece ahead: each shows whether the other has passed something over.  Nothing: it has.
inline constexpr std::size_t kLockTablePieceBytes = 4096;
std::optional<std::vector<std::string>> join_lock_table(const std::vector<std::string>& behind,
                                                        const std::vector<std::string>& ahead);

}  // namespace pawl
