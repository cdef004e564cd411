// Recovery by a program that was kept for it: `pawl fase recover --binary PROGRAM FILE` runs the
// program with an order in its environment.
#pragma once

namespace pawl::fase {

inline constexpr const char* kRecoverVariable = "PAWL_FASE_RECOVER";

// When the order is there: recovers the file, tells how it went on standard error, and ends the
// process before main(), with 0 or 1.
void recover_by_order();

}  // namespace pawl::fase
