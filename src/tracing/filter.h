// A seccomp filter that stops a traced process at the system calls that a table names; all others
// run at full speed.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

namespace pawl::tracing {

// Of an argument's low half; high_below and high_from of its high half.
enum class When : std::uint8_t { always, has_bits, lacks_bits, equals, high_below, high_from };

struct Condition {
  When when = When::always;
  std::uint8_t argument = 0;
  std::uint32_t value = 0;
};

// A call that stops the process when both conditions hold.  Several rules for one call are
// alternatives.
struct Rule {
  std::uint32_t number = 0;
  Condition first{};
  Condition second{};
};

// What becomes of calls by another table than that of 64-bit programs: `int 0x80`, x32.
enum class OtherTables : std::uint8_t { pass, fail };  // with ENOSYS

// Throws std::bad_alloc.
std::vector<sock_filter> make_filter(std::span<const Rule> rules,
                                     OtherTables others = OtherTables::pass);

// In the process that is to be traced: hands the picked calls to its tracer.  It is inherited, and
// ends with the processes.  Sets "no new privileges" only where the kernel demands it.
// Async-signal-safe: answers an errno.
int install_filter(std::span<const sock_filter> filter);

}  // namespace pawl::tracing
