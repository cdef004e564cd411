// Calls on memory name ranges as they like: part of a window, more than one, or one and its
// neighbours.  These functions cut such a range where windows begin and end.
#pragma once

#include "preload/interpose.h"

#include "preload/tracked_files.h"

namespace pawl::preload {

struct Piece {
  AddressRange range;
  TrackedFilePointer file;  // null: no window of ours, the kernel's to deal with
};

// In order of address, without gaps.
std::vector<Piece> pieces_of(const AddressRange& range);

inline char* pointer(std::uintptr_t address) { return AddressRange{address, address}.start(); }
inline std::size_t length(const AddressRange& range) { return range.bytes(); }

// Takes a part of the window away from the program.  What it holds stays pending.  The memory of a
// part stays where it is until the whole window is gone: giving it back earlier would take the rest
// of the window away for a moment, under the feet of other threads.  Called with file->lock held.
// In a child, of what it inherited: the memory goes, and nothing else happens.
Status unmap_part(const TrackedFilePointer& file, const AddressRange& part);

// For a mapping at a fixed address: EBUSY where a window lies in the range in part only, for half
// of one cannot be given away.
Status check_way(const AddressRange& range);
// Then unmaps the windows in the range.  Their memory stays where it is, to be mapped over.
Status make_way(const AddressRange& range);

}  // namespace pawl::preload
