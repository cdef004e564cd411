#include "preload/kernel_mappings.h"

#include <cerrno>
#include <optional>
#include <string>

#include "medium/memory_areas.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

// Where the device is another than in stat(2) the name tells.
bool is_of(const MemoryArea& mapped, const struct stat& file) {
  if (mapped.device == file.st_dev) return mapped.inode == file.st_ino;
  struct stat named{};
  return mapped.name.starts_with('/') && real().stat(mapped.name.c_str(), &named) == 0 &&
         named.st_dev == file.st_dev && named.st_ino == file.st_ino;
}

}  // namespace

Result<std::optional<AddressRange>> find_kernel_mapping(const struct stat& file,
                                                        const AddressRange& replaced) {
  std::optional<AddressRange> found;
  const bool looked = visit_memory_areas(kOwnMemoryAreas, [&](const MemoryArea& area) {
    const AddressRange range{area.start, area.end};
    if (!area.is_shared || !is_of(area, file) || replaced.contains(range)) return true;
    found = range;
    return false;
  });
  if (!looked) return FailedCall{errno, std::string("cannot read ") + kOwnMemoryAreas};
  return found;
}

}  // namespace pawl::preload
