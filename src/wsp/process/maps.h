// The mappings of a process, as /proc/PID/maps lists them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "medium/memory_areas.h"

namespace pawl::wsp {

constexpr std::size_t kMappingsMax = 65536;

// Empty when it is not as the kernel writes it.
std::vector<MemoryArea> parse_maps(std::string_view text);
// Empty when the process is gone.
std::vector<MemoryArea> read_maps(pid_t process);

}  // namespace pawl::wsp
