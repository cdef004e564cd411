// What would differ from run to run: random numbers and the time of day.  In this program they
// follow from a number that each thread sets for itself, so that a state found once is found again.
#pragma once

#include <cstdint>

namespace pawl::test {

// From here on, in this thread.  Threads that never called have numbers of their own.
void repeat_from(std::uint64_t seed);

}  // namespace pawl::test
