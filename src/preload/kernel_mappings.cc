#include "preload/kernel_mappings.h"

#include <sys/sysmacros.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "preload/real.h"

namespace pawl::preload {
namespace {

// A line of maps, of a file's mapping.
struct MappedFile {
  AddressRange range;
  bool is_shared = false;
  dev_t device = 0;
  std::uint64_t inode = 0;
  std::string name;
};

std::optional<MappedFile> parse(const std::string& line) {
  MappedFile mapped;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  char rights[5];
  unsigned major_number = 0;
  unsigned minor_number = 0;
  int name_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %*s %x:%x %" SCNu64 " %n", &low, &high,
                  rights, &major_number, &minor_number, &mapped.inode, &name_at) != 6)
    return std::nullopt;
  mapped.range = {low, high};
  mapped.is_shared = rights[3] == 's';
  mapped.device = makedev(major_number, minor_number);
  mapped.name = line.substr(static_cast<std::size_t>(name_at));
  return mapped;
}

// On some file systems (btrfs, overlayfs) maps has other numbers than stat(2): there the name
// tells.
bool is_of(const MappedFile& mapped, const struct stat& file) {
  if (mapped.device == file.st_dev) return mapped.inode == file.st_ino;
  struct stat named{};
  return mapped.name.starts_with('/') && real().stat(mapped.name.c_str(), &named) == 0 &&
         named.st_dev == file.st_dev && named.st_ino == file.st_ino;
}

}  // namespace

Result<std::optional<AddressRange>> find_kernel_mapping(const struct stat& file,
                                                        const AddressRange& replaced) {
  std::ifstream maps("/proc/thread-self/maps");
  if (!maps) return FailedCall{errno, "cannot read /proc/thread-self/maps"};
  for (std::string line; std::getline(maps, line);) {
    const auto mapped = parse(line);
    if (mapped && mapped->is_shared && is_of(*mapped, file) && !replaced.contains(mapped->range))
      return std::optional(mapped->range);
  }
  return std::optional<AddressRange>();
}

}  // namespace pawl::preload
