#include "snapshot/change_watch.h"

#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <cstddef>
#include <cstdint>
#include <string>

#include <unistd.h>

namespace pawl::snapshot {
namespace {

// File systems to which nobody writes but this kernel.
bool is_of_this_machine(int descriptor) {
  struct statfs file_system{};
  if (::fstatfs(descriptor, &file_system) != 0) return false;
  switch (static_cast<std::uint32_t>(file_system.f_type)) {
    case BTRFS_SUPER_MAGIC:
    case EXT4_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
      return true;
    default:
      return false;
  }
}

}  // namespace

ChangeWatch::ChangeWatch(int descriptor) {
  if (!is_of_this_machine(descriptor)) return;
  events_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string link = link_to_descriptor(descriptor);
  sees_all_ = events_.valid() &&
              ::inotify_add_watch(events_.get(), link.c_str(), IN_MODIFY | IN_ATTRIB) >= 0;
}

bool ChangeWatch::has_seen_one() const {
  if (!events_.valid()) return false;
  alignas(inotify_event) std::byte event[sizeof(inotify_event)];
  return ::read(events_.get(), event, sizeof event) > 0;
}

}  // namespace pawl::snapshot
