#include "preload/group.h"

#include <unistd.h>
#include <cerrno>
#include <climits>
#include <new>

#include "mapping/group.h"
#include "mapping/map_atomic.h"
#include "medium/descriptor.h"
#include "medium/environment.h"
#include "medium/open_medium.h"
#include "preload/lifecycle.h"
#include "preload/own_descriptors.h"

namespace pawl::preload {
namespace {

struct GroupOfProcess {
  std::string path;  // empty: there is none
  std::mutex lock;   // taken after a TrackedFile's; guards what follows, and opening and closing
  std::string path_now;  // its directory may have been renamed
  std::shared_ptr<Group> group;
  std::shared_ptr<Group> aside;  // closed for an exec: it keeps other processes away
};

// Never destroyed: calls come until the very end.
GroupOfProcess& own() {
  static GroupOfProcess& instance = *new GroupOfProcess;
  return instance;
}

// Null when there is none, or it is not open.
std::shared_ptr<Group> group() {
  if (own().path.empty()) return nullptr;
  const std::lock_guard guard(own().lock);
  return own().group;
}

// With the lock held.  False: it has lost its name.
bool follow_name(const Group& open) {
  std::string name = name_in_force(open.medium().base_descriptor());
  if (name.empty()) return false;
  own().path_now = std::move(name);
  return true;
}

// With the lock held.
Status close_if_unused() {
  if (own().group == nullptr || own().group->files() > 0) return {};
  follow_name(*own().group);
  Status closed = own().group->close();
  own().group.reset();
  return closed;
}

// A file that is lost is no longer in the group.
Status check_none_is_lost() {
  const TrackedFilePointer lost = own().path.empty() ? nullptr : table::lost_file();
  if (lost == nullptr) return {};
  return Status::failure(EIO, lost->path +
                                  " is no longer mapped atomically, and no commit of its group "
                                  "succeeds until the program has closed and unmapped it");
}

// With the lock held.
Status try_to_open_group(const Options& options) {
  auto medium = Group::open_medium(own().path_now);
  if (!medium.ok()) return medium.status();
  if (own().aside != nullptr) {
    medium.value()->take_over_writer(own().aside->medium());
    own().aside.reset();  // with what it takes of the disk
  }
  auto opened = Group::open(std::move(medium.value()), options);
  if (!opened.ok()) return opened.status();
  own().group = std::move(opened.value());
  return {};
}

// With the lock held.  Who looks at a file that a crash left recovers its group: that is waited
// for.
Status open_group(const Options& options) {
  if (own().group != nullptr) return {};
  if (own().aside == nullptr)
    return retry_while_opened(own().path_now, [&] { return try_to_open_group(options); });
  follow_name(*own().aside);
  return try_to_open_group(options);
}

Result<std::unique_ptr<Mapping>> open_in_group(int descriptor, const Options& options,
                                               Medium* aside) {
  const std::lock_guard guard(own().lock);
  PAWL_TRY(open_group(options));
  auto medium = open_medium(descriptor, MediumKind::block);
  if (medium.ok() && aside != nullptr) medium.value()->take_over_writer(*aside);
  auto joined = medium.ok() ? Group::join(own().group, std::move(medium.value()))
                            : Result<std::unique_ptr<Mapping>>(medium.status());
  // Nobody else would close it.
  if (!joined.ok()) [[maybe_unused]]
    const Status closed = close_if_unused();
  return joined;
}

Result<std::unique_ptr<Mapping>> open_alone(int descriptor, const Options& options, Medium* aside) {
  auto medium = open_medium(descriptor, options.medium);
  if (!medium.ok()) return medium.status();
  if (aside != nullptr) medium.value()->take_over_writer(*aside);
  return Mapping::open(std::move(medium.value()), options);
}

}  // namespace

void read_group() {
  const char* const variable = environment_variable("PAWL_GROUP");
  if (variable == nullptr || *variable == '\0') return;
  own().path = variable;
  char directory[PATH_MAX];
  if (own().path.front() != '/' && getcwd(directory, sizeof directory) != nullptr)
    own().path = std::string(directory) + "/" + own().path;
  own().path_now = own().path;
}

bool has_group() { return !own().path.empty(); }

Result<std::unique_ptr<Mapping>> open_mapping(int descriptor, Medium* aside) {
  const auto options = Options::from_environment();
  if (!options.ok()) return options.status();
  PAWL_TRY(check_tracker(options.value()));
  Result<std::unique_ptr<Mapping>> mapping = Status::failure(EIO, "not opened");
  keep_what_appears([&] {
    mapping = has_group() ? open_in_group(descriptor, options.value(), aside)
                          : open_alone(descriptor, options.value(), aside);
  });
  return mapping;
}

Status check_group_usable() {
  if (!has_group()) return {};
  const std::lock_guard guard(own().lock);
  if (own().group == nullptr || follow_name(*own().group)) return {};
  return Status::failure(EBUSY, own().path_now +
                                    ", the file of the group, cannot be opened again "
                                    "under its name");
}

std::string path_of_open_group() {
  if (!has_group()) return {};
  const std::lock_guard guard(own().lock);
  if (own().group == nullptr) return {};
  follow_name(*own().group);
  return own().path_now;
}

Status close_group_if_unused() {
  if (!has_group()) return {};
  const std::lock_guard guard(own().lock);
  own().aside.reset();
  return close_if_unused();
}

Status close_group_for_exec() {
  if (!has_group()) return {};
  const std::lock_guard guard(own().lock);
  if (own().group == nullptr || own().group->files() > 0) return {};
  PAWL_TRY(own().group->medium().stay_the_writer());
  own().aside = own().group;
  return close_if_unused();
}

Status commit_all(TrackedFile& file) {
  const auto all = group();
  return all != nullptr ? all->commit() : file.mapping->commit_all();
}

Status synchronise_all(TrackedFile& file) {
  PAWL_TRY(commit_all(file));
  return check_none_is_lost();
}

Status commit_range(TrackedFile& file, void* address, std::size_t length) {
  const auto all = group();
  if (all == nullptr) return file.mapping->commit(address, length);
  PAWL_TRY(all->commit());
  return check_none_is_lost();
}

Status commit_range_async(TrackedFile& file, void* address, std::size_t length) {
  const auto all = group();
  if (all == nullptr) return file.mapping->commit_async(address, length);
  PAWL_TRY(all->commit_async());
  return check_none_is_lost();
}

void lock_group_for_fork() { own().lock.lock(); }
void unlock_group_after_fork() { own().lock.unlock(); }

// Its threads are the parent's, and cannot be waited for: it is never freed.
void forget_group_in_child() {
  static std::shared_ptr<Group>& left = *new std::shared_ptr<Group>;
  for (std::shared_ptr<Group>* const of_parent : {&own().group, &own().aside}) {
    if (*of_parent != nullptr) new (&left) std::shared_ptr<Group>(std::move(*of_parent));
  }
}

}  // namespace pawl::preload
