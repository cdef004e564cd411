#include "preload/pieces.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "mapping/memory_calls.h"
#include "medium/memory_functions.h"
#include "preload/lifecycle.h"

namespace pawl::preload {
namespace {

std::vector<AddressRange> with_hole(std::vector<AddressRange> holes, const AddressRange& added) {
  holes.push_back(added);
  std::sort(holes.begin(), holes.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.low < b.low; });
  std::vector<AddressRange> merged;
  for (const AddressRange& hole : holes) {
    if (!merged.empty() && hole.low <= merged.back().high) {
      merged.back().high = std::max(merged.back().high, hole.high);
    } else {
      merged.push_back(hole);
    }
  }
  return merged;
}

}  // namespace

std::vector<Piece> pieces_of(const AddressRange& range) {
  std::vector<Piece> windows;
  for (const TrackedFilePointer& file : table::with_windows_in(range)) {
    const AddressRange common = table::window_of(*file).intersect(range);
    if (!common.empty()) windows.push_back({common, file});
  }
  for (const table::InheritedPart& part : table::inherited_in(range))
    windows.push_back({part.range, part.file});
  return with_gaps(range, std::move(windows));
}

namespace {

Status unmap_copy(const TrackedFilePointer& file, const AddressRange& part) {
  if (memory::unmap(part.start(), part.bytes()) != 0) return FailedCall{errno, "munmap"};
  return end_if_unused(file);
}

}  // namespace

Status unmap_part(const TrackedFilePointer& file, const AddressRange& part) {
  if (file->is_of_other_memory()) return unmap_copy(file, part);
  const AddressRange window = table::window_of(*file);
  const AddressRange gone = window.intersect(part);
  if (gone.empty() || (file->mapping == nullptr && !file->is_lost)) return {};
  const auto holes = with_hole(file->holes, gone);
  if (holes.size() == 1 && holes.front().contains(window)) {
    {
      memory::LeftPlace left;
      // Where it has none, a close that failed left the memory behind, or the file is lost.
      if (!file->is_lost && file->mapping->window()) {
        const memory::Spared spared(window.start(), window.bytes());
        PAWL_TRY(file->mapping->unmap_window(!file->inherited));
      }
      left.take(window.start(), window.bytes());
      file->holes.clear();
      table::set_window(*file, {});
    }
    return end_if_unused(file);
  }
  if (holes.size() > kWindowHolesMax) {
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_MANY,
                           file->path + ": too many parts of its mapping were unmapped");
  }
  file->holes = holes;
  return {};
}

Status check_way(const AddressRange& range) {
  for (const TrackedFilePointer& file : table::with_windows_in(range)) {
    if (range.contains(table::window_of(*file))) continue;
    const Held held = hold_file(file);
    return Status::failure(EBUSY, "a fixed mapping would cover a part of the atomic mapping of " +
                                      file->path + "; unmap that mapping first");
  }
  return {};
}

Status make_way(const AddressRange& range) {
  for (const TrackedFilePointer& file : table::with_windows_in(range)) {
    const Held held = hold_file(file);
    const AddressRange window = table::window_of(*file);
    if (!held || window.empty()) continue;
    Status status;
    {
      const memory::Spared spared(window.start(), window.bytes());
      status = unmap_part(file, window);
    }
    if (status.ok()) continue;
    if (table::window_of(*file).empty()) memory_calls::leave_nothing(window);
    return status;
  }
  return {};
}

}  // namespace pawl::preload
