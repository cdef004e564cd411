// How many page faults the whole machine has counted: `pgfault` in /proc/vmstat.
//
// The kernel formats the hundred lines before that one, too, and that is nine tenths of what a
// reading costs.  But it takes the numbers anew for each read, not for each open: a descriptor that
// was read up to the line answers the next read with the line of that moment.  So whoever has
// nothing to do prepares one (docs/benchmarks.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace pawl::machine_faults {

// For what /proc/vmstat says: more than a small stack of a thread has.
using Text = std::array<char, std::size_t{16} << 10>;

// Never fewer than had been counted when the call began.  Nothing where the kernel does not say.
// Any thread may call.
std::optional<std::int64_t> count(Text& text);

// Makes the next count cheap, if there was one since the last time.  Any thread may call; does
// nothing while another is at it.
void prepare() noexcept;
// Whether the next count is a cheap one: for tests.
bool is_prepared();

// Closes what is prepared, unless prepare() is at it just now: nobody counts any more.
void close();

}  // namespace pawl::machine_faults
