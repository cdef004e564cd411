// What a program's own seccomp filter does to the system calls that commits make.
#pragma once

#include <linux/filter.h>

#include <optional>
#include <span>
#include <string>

#include "cli/watch/tracer.h"

namespace pawl::cli::watch {

// Names of calls, separated by commas.
struct SandboxVerdict {
  std::string breaks;     // it kills for these, or refuses what no commit can do without
  std::string may_break;  // it looks at their arguments, asks another process, or refuses them
};

SandboxVerdict judge_sandbox(std::span<const sock_filter> filter);

// Of the filter that this call of seccomp(2) or prctl(2) installs; empty when it installs none.
std::optional<SandboxVerdict> judge_sandbox_of(const Call& call);

}  // namespace pawl::cli::watch
