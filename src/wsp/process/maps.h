// The mappings of a process, as /proc/PID/maps lists them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::wsp {

struct MapsLine {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  int protection = 0;  // PROT_*
  bool is_shared = false;
  std::uint64_t offset = 0;
  unsigned device_major = 0;
  unsigned device_minor = 0;
  std::uint64_t inode = 0;
  std::string name;  // empty for nameless memory

  std::uint64_t bytes() const { return end - start; }
  // Of the kernel's own: [vvar], [vdso] and their kin.
  bool is_kernels() const { return name.starts_with("[v"); }
};

constexpr std::size_t kMappingsMax = 65536;

// Empty when it is not as the kernel writes it.
std::vector<MapsLine> parse_maps(std::string_view text);
// Empty when the process is gone.
std::vector<MapsLine> read_maps(pid_t process);

}  // namespace pawl::wsp
