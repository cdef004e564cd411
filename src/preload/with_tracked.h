// The way of a call on a descriptor to the Mapping of its file.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/other_writers.h"

namespace pawl::preload {

// Calls work(file), under the file's lock, for the descriptor of a tracked file that this process
// may change; its refusal otherwise, as of one that is lost, whose memory must keep its file; or
// where another process writes it.  Empty when the descriptor is none of ours.
template <class Work>
std::optional<Status> with_tracked(int descriptor, const Work& work) {
  if (inside()) return std::nullopt;
  if (!table::may_be_tracked(descriptor)) {
    Status status = check_no_other_writer(descriptor);
    if (!status.ok()) return status;
    if (!table::may_be_tracked(descriptor)) return std::nullopt;
  }
  const Inside working;
  const Held file = hold_descriptor(descriptor);
  if (!file || (file->mapping == nullptr && !file->is_lost)) return std::nullopt;
  PAWL_TRY(check_ours(*file));
  return work(*file);
}

// The size that the program sees; empty when the file is none of ours.
inline std::optional<off_t> size_of_tracked(dev_t device, ino_t inode) {
  if (inside() || table::is_empty()) return std::nullopt;
  const Inside working;
  const Held file = hold_inode(device, inode);
  if (!file || file->mapping == nullptr) return std::nullopt;
  return static_cast<off_t>(file->mapping->size());
}

}  // namespace pawl::preload
