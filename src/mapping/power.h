// Whether the power has failed, as far as anybody said so: then commits of the durability on-fail
// wait for the disk, as others do, so that what is outstanding only becomes less.
#pragma once

#include <atomic>

namespace pawl {

inline std::atomic<bool> the_power_is_failing{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // signal handlers say it

// From now on SIGPWR says so, unless the program does something with that signal itself: else it
// would end the process, whose last commits then wait for somebody to flush them.
void watch_power_signal();

}  // namespace pawl
