// The system calls that a kept program may not make, each with its reason: what they make would not
// be there after a power failure.  docs/wsp-run.md lists the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tracing/filter.h"

namespace pawl::wsp {

struct Refusal {
  tracing::Rule rule;
  const char* name;
  int error_number;    // what the call answers
  const char* reason;  // why, and what to do
};

std::span<const Refusal> refusals();
// Nothing for a call that is not refused, or not with these arguments.
const Refusal* refusal_of(std::uint64_t number, std::span<const std::uint64_t> arguments);

// All rules: the refusals, the calls that change the address space, the annex's own.
std::vector<tracing::Rule> all_rules(int memory_descriptor);

}  // namespace pawl::wsp
