// The mappings that the C API made in this process, found by address or by file; for calls on
// memory the heaps' too; and all files whose size is not the program's to set.
//
// In a child, those of its parent are found behind its own, and only where a copy of the window is
// left (medium/inherited_memory.h): they refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mapping/mapping.h"
#include "medium/address_range.h"

namespace pawl::open_mappings {

inline constexpr std::size_t kOpenMappingsMax = 256;

// ENFILE when there are kOpenMappingsMax already.
Status add(std::shared_ptr<Mapping> mapping, const Window& window);
// The mapping whose window holds the address; null when there is none.
std::shared_ptr<Mapping> find(const void* address, Window* window = nullptr);
struct FoundFile {
  std::shared_ptr<Mapping> mapping;  // null: there is none, or it is not the program's
  const char* whose = nullptr;       // whose file it is, if not the program's: "a heap"
};
FoundFile find_file(std::uint64_t device, std::uint64_t inode);
// Takes the mapping out that was found there, so that one caller closes it; null when it is there
// no more: another thread's may have the address by now.
std::shared_ptr<Mapping> remove(const Mapping& mapping, const void* address);
// The same, and closes it.  False: it is there no more.
Result<bool> close(const Mapping& mapping, const void* address);

// Its window is elsewhere now, and what it left is still taken (memory::LeftPlace).
void move(const Mapping& mapping, const Window& window);

// What belongs to a heap is found by pieces_of() and find_file() only.
void add_heap(std::shared_ptr<Mapping> mapping, const Window& window);
void remove_heap(const Mapping& mapping);
// A file of Pawl's own that has no mapping; find_file() finds it.
void add_file(const void* owner, std::uint64_t device, std::uint64_t inode, const char* whose);
void remove_file(const void* owner);

// Without a lock or memory; false means certainly not.
bool may_have_windows_in(const AddressRange& range);

struct Piece {
  AddressRange range;
  AddressRange window;               // that the range is of
  std::shared_ptr<Mapping> mapping;  // null: no window of ours, the kernel's to deal with
  bool is_heap = false;
};
// In order of address, without gaps.
std::vector<Piece> pieces_of(const AddressRange& range);

}  // namespace pawl::open_mappings
