// The C border of groups.

#include <sys/mman.h>
#include <cerrno>

#include "mapping/border.h"
#include "mapping/group.h"
#include "mapping/map_atomic.h"
#include "pawl/pawl.h"

using pawl::finish;
using pawl::Group;
using pawl::invalid;
using pawl::Options;
using pawl::Status;

struct pawl_group {
  std::shared_ptr<Group> group;
};

namespace {

Status no_group() { return invalid("group must not be NULL"); }

Status open_group(const char* path, const pawl_options* given, pawl_group** opened) {
  if (path == nullptr) return invalid("path must not be NULL");
  auto options = given != nullptr ? Options::from_public(*given) : Options::from_environment();
  if (!options.ok()) return options.status();
  PAWL_TRY(pawl::check_tracker(options.value()));
  auto group = Group::open(path, options.value());
  if (!group.ok()) return group.status();
  *opened = new pawl_group{std::move(group.value())};
  return {};
}

}  // namespace

extern "C" {

PAWL_PUBLIC struct pawl_group* pawl_group_open(const char* path,
                                               const struct pawl_options* options) {
  pawl_group* opened = nullptr;
  finish([&] { return open_group(path, options, &opened); });
  return opened;
}

PAWL_PUBLIC void* pawl_group_mmap(struct pawl_group* group, void* addr, size_t length, int prot,
                                  int flags, int fd, off_t offset) {
  const void* const caller = __builtin_return_address(0);
  void* result = MAP_FAILED;
  finish([&] {
    if (group == nullptr) return no_group();
    return pawl::map_atomic_in(group->group, {addr, length, prot, flags, fd, offset, caller},
                               &result);
  });
  return result;
}

PAWL_PUBLIC int pawl_group_msync(struct pawl_group* group, int flags) {
  pawl::cancellation_point();
  return finish([&]() -> Status {
    if (group == nullptr) return no_group();
    switch (flags) {
      case MS_SYNC:
        return group->group->commit();
      case MS_ASYNC:
        return group->group->commit_async();
      case MS_INVALIDATE:
        return group->group->roll_back();
      default:
        return invalid("flags must be one of MS_SYNC, MS_ASYNC and MS_INVALIDATE");
    }
  });
}

PAWL_PUBLIC int pawl_group_wait(struct pawl_group* group) {
  pawl::cancellation_point();
  return finish([&] { return group == nullptr ? no_group() : group->group->wait(); });
}

PAWL_PUBLIC int pawl_group_close(struct pawl_group* group) {
  return finish([&]() -> Status {
    if (group == nullptr) return no_group();
    Status closed = group->group->close();
    // With mappings left the group is still there.  In a forked child it is not the child's, and
    // its threads are not there to be ended.
    if (closed.error_number() != EBUSY && closed.error_number() != EPERM) delete group;
    return closed;
  });
}

}  // extern "C"
