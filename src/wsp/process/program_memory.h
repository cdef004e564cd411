// Memory of a program, read without touching its pages: one of a mapped file may be the program's
// user's to serve (FUSE), and who touches it waits for as long as that one likes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "medium/memory_areas.h"
#include "wsp/process/annex.h"
#include "wsp/process/kept_memory.h"

namespace pawl::wsp {

// Of a thread that stands still; what others of the program map meanwhile is not seen.
class ProgramMemory {
 public:
  // All outlive it.
  ProgramMemory(const KeptMemory& memory, const CallList& list, pid_t leader)
      : memory_(memory), list_(list), leader_(leader) {}

  // What lies in the memory file is read there; a mapped file, by a child that is waited for some
  // milliseconds, and no more once that was in vain.  False where not all of it could be read.
  bool read(std::uint64_t address, void* into, std::size_t count);

  template <class T>
  std::optional<T> read_object(std::uint64_t address) {
    T object{};
    if (!read(address, &object, sizeof(object))) return std::nullopt;
    return object;
  }

  // Of a place into which program or kernel store: it is in the memory file.
  template <class T>
  std::optional<T> read_stored(std::uint64_t address) const {
    T object{};
    if (!read_file(address, &object, sizeof(object))) return std::nullopt;
    return object;
  }

 private:
  bool read_file(std::uint64_t address, void* into, std::size_t count) const;
  bool read_mapped(std::uint64_t address, void* into, std::size_t count);
  const MemoryArea* area_of(std::uint64_t address);

  const KeptMemory& memory_;
  const CallList& list_;
  pid_t leader_;
  std::vector<MemoryArea> areas_;  // once they are needed
  bool has_waited_ = false;        // in vain
};

}  // namespace pawl::wsp
