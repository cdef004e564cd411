// Calls that ask for durability of a file as a whole: each is a commit of all of it.
#include "preload/interpose.h"

#include "preload/group.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/real.h"
#include "preload/with_tracked.h"

namespace pawl::preload {
namespace {

// Empty when the descriptor is none of ours.
std::optional<Status> commit_descriptor(int descriptor) {
  if (!table::may_be_tracked(descriptor)) return std::nullopt;
  const Inside working;
  const Held file = hold_descriptor(descriptor);
  if (!file || (file->mapping == nullptr && !file->is_lost)) return std::nullopt;
  PAWL_TRY(check_ours(*file));
  return synchronise_all(*file);
}

Status commit_everything() {
  Status first_failure;
  if (table::is_empty()) return first_failure;
  const Inside working;
  for (const TrackedFilePointer& present : table::all()) {
    const Held file = hold_file(present);
    if (!file || (!file->is_lost && !check_ours(*file).ok())) continue;
    if (Status status = file->is_lost ? check_ours(*file) : synchronise_all(*file);
        !status.ok() && first_failure.ok())
      first_failure = status;
  }
  return first_failure;
}

}  // namespace

PAWL_INTERPOSE int fsync(int descriptor) try {
  PAWL_PASS_OR_REFUSE("fsync", table::may_be_tracked(descriptor), real().fsync(descriptor));
  pthread_testcancel();
  const auto outcome = commit_descriptor(descriptor);
  if (!outcome) PAWL_RETURN(real().fsync(descriptor));
  PAWL_RETURN(outcome->ok() ? 0 : refuse("fsync", *outcome));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int fdatasync(int descriptor) try {
  PAWL_PASS_OR_REFUSE("fdatasync", table::may_be_tracked(descriptor), real().fdatasync(descriptor));
  pthread_testcancel();
  const auto outcome = commit_descriptor(descriptor);
  if (!outcome) PAWL_RETURN(real().fdatasync(descriptor));
  PAWL_RETURN(outcome->ok() ? 0 : refuse("fdatasync", *outcome));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE void sync() noexcept try {
  PAWL_KEEP_ERRNO();
  if (inside() && !table::is_empty()) {
    refuse_within("sync");
  } else if (const Status status = commit_everything(); !status.ok()) {
    say("sync", status.text());
  }
  real().sync();
  errno = errno_before_;
}
PAWL_OR_NO_MEMORY_AND_NO_RESULT

PAWL_INTERPOSE int syncfs(int descriptor) noexcept try {
  PAWL_PASS_OR_REFUSE("syncfs", !table::is_empty(), real().syncfs(descriptor));
  if (const Status status = commit_everything(); !status.ok())
    PAWL_RETURN(refuse("syncfs", status));
  PAWL_RETURN(real().syncfs(descriptor));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int sync_file_range(int descriptor, off64_t offset, off64_t count,
                                   unsigned flags) try {
  PAWL_KEEP_ERRNO();
  // It promises no durability, and writing pages early is all that it does.
  if (!inside() && table::may_be_tracked(descriptor)) PAWL_RETURN(0);
  PAWL_RETURN(real().sync_file_range(descriptor, offset, count, flags));
}
PAWL_OR_NO_MEMORY

}  // namespace pawl::preload
