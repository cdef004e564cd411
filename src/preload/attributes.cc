// Extended attributes.  The mark says that the file alone lacks commits; who reads it through the
// face gets all of them, so a copy that he makes must not carry the mark.
#include "preload/interpose.h"

#include <linux/limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "medium/named_medium.h"
#include "preload/inside.h"
#include "preload/named_files.h"
#include "preload/patterns.h"
#include "preload/real.h"
#include "preload/with_tracked.h"
#include "track/kernel_store_guard.h"

namespace pawl::preload {
namespace {

bool is_tracked(const struct stat& status) {
  return S_ISREG(status.st_mode) && size_of_tracked(status.st_dev, status.st_ino).has_value();
}

// Who opens such a name for reading gets all that was committed, or an error.
bool is_read_whole(const char* path, bool follow_links) {
  if (!in_own_process() || (!has_patterns() && table::is_empty())) return false;
  NamedFile file{};
  {
    const Inside working;
    const auto found = look_up(AT_FDCWD, path, follow_links);
    if (!found.ok() || !found.value()) return false;
    file = *found.value();
  }
  return S_ISREG(file.status.st_mode) &&
         (matches_a_pattern(file.real_path) || is_tracked(file.status));
}

// What another process writes is read as it lies there by descriptors that are no copies.
bool is_read_whole(int descriptor) {
  struct stat status{};
  return in_own_process() && table::may_be_tracked(descriptor) &&
         real().fstat(descriptor, &status) == 0 && is_tracked(status);
}

// The kernel answers first: then the name can be read.
template <class IsHidden>
ssize_t without_mark(const char* name, ssize_t got, const IsHidden& is_hidden) {
  if (got < 0 && errno != ERANGE) return got;
  if (std::strcmp(name, kMarkAttribute) != 0 || !is_hidden()) return got;
  errno = ENODATA;
  return -1;
}

template <class List, class IsHidden>
ssize_t list_without_mark(char* names, std::size_t size, bool is_marked, const List& list,
                          const IsHidden& is_hidden) {
  if (!is_marked || !is_hidden()) return list(names, size);
  std::vector<char> all(XATTR_LIST_MAX);
  const ssize_t length = list(all.data(), all.size());
  if (length < 0) return length;
  all.resize(static_cast<std::size_t>(length));
  for (auto name = all.begin(); name != all.end();) {
    const auto next = std::find(name, all.end(), '\0') + 1;
    name = std::strcmp(&*name, kMarkAttribute) == 0 ? all.erase(name, next) : next;
  }
  if (size != 0 && size < all.size()) {
    errno = ERANGE;
    return -1;
  }
  if (size != 0) std::copy(all.begin(), all.end(), names);
  return static_cast<ssize_t>(all.size());
}

}  // namespace

PAWL_INTERPOSE ssize_t getxattr(const char* path, const char* name, void* value,
                                size_t size) noexcept try {
  PAWL_PASS(real().getxattr(path, name, value, size));
  KernelStoreGuard guard(value, size);
  PAWL_RETURN(without_mark(name, guard.stored(real().getxattr(path, name, value, size)),
                           [&] { return is_read_whole(path, true); }));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE ssize_t lgetxattr(const char* path, const char* name, void* value,
                                 size_t size) noexcept try {
  PAWL_PASS(real().lgetxattr(path, name, value, size));
  KernelStoreGuard guard(value, size);
  PAWL_RETURN(without_mark(name, guard.stored(real().lgetxattr(path, name, value, size)),
                           [&] { return is_read_whole(path, false); }));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE ssize_t fgetxattr(int descriptor, const char* name, void* value,
                                 size_t size) noexcept try {
  PAWL_PASS(real().fgetxattr(descriptor, name, value, size));
  KernelStoreGuard guard(value, size);
  PAWL_RETURN(without_mark(name, guard.stored(real().fgetxattr(descriptor, name, value, size)),
                           [&] { return is_read_whole(descriptor); }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE ssize_t listxattr(const char* path, char* names, size_t size) noexcept try {
  PAWL_PASS(real().listxattr(path, names, size));
  KernelStoreGuard guard(names, size);
  const bool is_marked = real().getxattr(path, kMarkAttribute, nullptr, 0) >= 0;
  PAWL_RETURN(guard.stored(list_without_mark(
      names, size, is_marked,
      [&](char* into, std::size_t room) { return real().listxattr(path, into, room); },
      [&] { return is_read_whole(path, true); })));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE ssize_t llistxattr(const char* path, char* names, size_t size) noexcept try {
  PAWL_PASS(real().llistxattr(path, names, size));
  KernelStoreGuard guard(names, size);
  const bool is_marked = real().lgetxattr(path, kMarkAttribute, nullptr, 0) >= 0;
  PAWL_RETURN(guard.stored(list_without_mark(
      names, size, is_marked,
      [&](char* into, std::size_t room) { return real().llistxattr(path, into, room); },
      [&] { return is_read_whole(path, false); })));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE ssize_t flistxattr(int descriptor, char* names, size_t size) noexcept try {
  PAWL_PASS(real().flistxattr(descriptor, names, size));
  KernelStoreGuard guard(names, size);
  const bool is_marked = real().fgetxattr(descriptor, kMarkAttribute, nullptr, 0) >= 0;
  PAWL_RETURN(guard.stored(list_without_mark(
      names, size, is_marked,
      [&](char* into, std::size_t room) { return real().flistxattr(descriptor, into, room); },
      [&] { return is_read_whole(descriptor); })));
}
PAWL_OR_NO_MEMORY

}  // namespace pawl::preload
