#include "wsp/process/maps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "wsp/process/proc.h"

namespace pawl::wsp {

std::vector<MemoryArea> parse_maps(std::string_view text) {
  std::vector<MemoryArea> areas;
  while (!text.empty() && areas.size() < kMappingsMax) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::optional<MemoryArea> area = parse_memory_area(text.substr(0, end));
    if (!area.has_value()) return {};
    areas.push_back(std::move(*area));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return areas;
}

std::vector<MemoryArea> read_maps(pid_t process) { return parse_maps(read_proc(process, "maps")); }

}  // namespace pawl::wsp
