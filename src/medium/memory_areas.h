// What a process has mapped, as the lines of /proc/PID/maps tell it (proc_pid_maps(5)).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace pawl {

struct MemoryArea {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  int protection = 0;  // PROT_*
  bool is_shared = false;
  std::uint64_t offset = 0;  // in the file
  dev_t device = 0;          // on some file systems (btrfs, overlayfs) another one than in stat(2)
  std::uint64_t inode = 0;
  std::string name;  // a file, or a name such as [stack]; empty for nameless memory

  std::uint64_t bytes() const { return end - start; }
  // Of the kernel's own: [vvar], [vdso] and their kin.
  bool is_kernels() const { return name.starts_with("[v"); }
};

inline constexpr const char* kOwnMemoryAreas = "/proc/thread-self/maps";

// Nothing when the line is not as the kernel writes it.
std::optional<MemoryArea> parse_memory_area(std::string_view line);

// Calls visit for each area of the file of that path, in order, until it answers false.  False,
// with errno, when the file cannot be read.
bool visit_memory_areas(const std::string& path,
                        const std::function<bool(const MemoryArea&)>& visit);

}  // namespace pawl
