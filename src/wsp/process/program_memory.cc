#include "wsp/process/program_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "wsp/process/bounded_child.h"
#include "wsp/process/maps.h"

namespace pawl::wsp {

bool ProgramMemory::read(std::uint64_t address, void* into, std::size_t count) {
  auto* to = static_cast<std::byte*>(into);
  while (count > 0) {
    const MemoryArea* const area = area_of(address);
    if (area == nullptr) return false;
    const std::size_t part = std::min<std::uint64_t>(count, area->end - address);
    const bool is_memory = area->is_shared && area->inode == memory_.inode();
    if (is_memory ? !read_file(address, to, part) : !read_mapped(address, to, part)) return false;
    address += part;
    to += part;
    count -= part;
  }
  return true;
}

bool ProgramMemory::read_file(std::uint64_t address, void* into, std::size_t count) const {
  return address < kMemoryFileBytes &&
         ::pread(memory_.memory(), into, count, static_cast<off_t>(address)) ==
             static_cast<ssize_t>(count);
}

bool ProgramMemory::read_mapped(std::uint64_t address, void* into, std::size_t count) {
  if (has_waited_) return false;
  const SharedBytes told(count);
  if (told.data() == nullptr) return false;
  const int program = list_.program_memory();
  const auto read_there = [&] {
    const bool is_read = ::pread(program, told.data(), count, static_cast<off_t>(address)) ==
                         static_cast<ssize_t>(count);
    return is_read ? Status{} : Status::failure(EFAULT, "not readable");
  };
  const Status done = try_in_child(kServerTimeMax, read_there, {program});
  has_waited_ = done.error_number() == ETIMEDOUT;
  if (!done.ok()) return false;
  std::memcpy(into, told.data(), count);
  return true;
}

const MemoryArea* ProgramMemory::area_of(std::uint64_t address) {
  if (areas_.empty()) areas_ = read_maps(leader_);
  const auto behind =
      std::upper_bound(areas_.begin(), areas_.end(), address,
                       [](std::uint64_t at, const MemoryArea& area) { return at < area.end; });
  return behind != areas_.end() && behind->start <= address ? &*behind : nullptr;
}

}  // namespace pawl::wsp
