#include "preload/parents_files.h"

#include <sys/stat.h>

#include <cerrno>

#include "preload/messages.h"
#include "preload/real.h"
#include "preload/tracked_files.h"

namespace pawl::preload {
namespace {

int refuse_if_mapped(const char* call, const struct stat& status) {
  if (!S_ISREG(status.st_mode) || !table::has_inode(status.st_dev, status.st_ino)) return 0;
  return refuse(call, EPERM,
                "the file was mapped by the parent process, which alone may change and commit it; "
                "map it after fork() where the child is the writer");
}

}  // namespace

int refuse_parents_file(const char* call, int directory, const char* path, int flags) {
  if (table::is_empty()) return 0;
  struct stat status{};
  return real().fstatat(directory, path, &status, flags) == 0 ? refuse_if_mapped(call, status) : 0;
}

int refuse_parents_file(const char* call, int descriptor) {
  if (table::is_empty()) return 0;
  struct stat status{};
  return real().fstat(descriptor, &status) == 0 ? refuse_if_mapped(call, status) : 0;
}

}  // namespace pawl::preload
