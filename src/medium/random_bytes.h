// Names, ids and epochs that nobody guesses.
#pragma once

#include <cstddef>
#include <span>

#include "medium/status.h"

namespace pawl {

// Refused in a sandbox without getrandom(2); or interrupted, while the machine that has just
// started has no entropy yet.
Status draw_random(std::span<std::byte> bytes);

}  // namespace pawl
