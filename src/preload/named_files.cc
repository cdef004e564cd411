#include "preload/named_files.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <cerrno>

#include "medium/block_medium.h"
#include "preload/lifecycle.h"
#include "preload/patterns.h"
#include "preload/read_snapshots.h"
#include "preload/real.h"

namespace pawl::preload {

std::optional<NamedFile> identify(int descriptor) {
  NamedFile file{};
  if (real().fstat(descriptor, &file.status) != 0) return std::nullopt;
  const auto real_path = path_of_descriptor(descriptor);
  if (!real_path) return std::nullopt;
  file.real_path = *real_path;
  return file;
}

std::optional<NamedFile> look_up(int directory, const char* path, bool follow_links) {
  if (path == nullptr) return std::nullopt;
  const int handle =
      real().openat(directory, path, O_PATH | O_CLOEXEC | (follow_links ? 0 : O_NOFOLLOW));
  if (handle < 0) return std::nullopt;
  auto file = identify(handle);
  real().close(handle);
  return file;
}

bool concerns_us(const std::string& real_path) {
  return matches_a_pattern(real_path) ||
         getxattr(real_path.c_str(), kMarkAttribute, nullptr, 0) >= 0;
}

Status recover_before_use(const NamedFile& file, bool is_only_read) {
  if (!S_ISREG(file.status.st_mode)) return {};
  if (is_only_read && !matches_a_pattern(file.real_path)) return {};
  Status status = retry_while_opened(file.real_path, [&] {
    // Whoever may only read it leaves it to its writer; what was committed is shown by a copy.
    if (is_only_read && is_written_elsewhere(file))
      return Status::failure(EBUSY, file.real_path + " has a writer");
    return recover_now(file.real_path);
  });
  if (status.ok() || status.error_number() == EBUSY) return {};
  if (!concerns_us(file.real_path)) return {};
  if (status.error_number() != EACCES) return status;
  return Status::failure(EACCES, status.text() +
                                     ". A crash left it open, and it must be recovered first by "
                                     "who may write it: let its program open it again, or run "
                                     "pawl recover. To read what is committed take pawl snapshot");
}

}  // namespace pawl::preload
