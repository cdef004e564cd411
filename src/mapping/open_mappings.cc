#include "mapping/open_mappings.h"

#include "mapping/fork_guard.h"

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

namespace pawl::open_mappings {
namespace {

struct Entry {
  Window window;
  dev_t device = 0;
  std::shared_ptr<Mapping> mapping;
};

// Never destroyed: threads may still use mappings while the process exits.
std::shared_mutex& table_mutex() {
  static auto* const mutex = [] {
    auto* const made = new std::shared_mutex;
    // In the child it is made anew: it knows its holder by the thread's number, which is another's.
    guard_fork(made, {.before = [made] { made->lock(); },
                      .in_parent = [made] { made->unlock(); },
                      .in_child = [made] { new (made) std::shared_mutex; }});
    return made;
  }();
  return *mutex;
}
std::vector<Entry>& table() {
  static auto* const entries = new std::vector<Entry>;
  return *entries;
}

bool holds(const Entry& entry, const void* address) {
  const char* at = static_cast<const char*>(address);
  return at >= entry.window.address && at < entry.window.address + entry.window.length;
}

}  // namespace

Status add(std::shared_ptr<Mapping> mapping, const Window& window) {
  struct stat status{};
  const int found = ::stat(mapping->medium().path().c_str(), &status);
  const std::lock_guard lock(table_mutex());
  if (table().size() >= kOpenMappingsMax) {
    return Status::failure(ENFILE, "this process has " + std::to_string(kOpenMappingsMax) +
                                       " atomic mappings; unmap one first");
  }
  table().push_back({window, found == 0 ? status.st_dev : 0, std::move(mapping)});
  return {};
}

std::shared_ptr<Mapping> find(const void* address, Window* window) {
  const std::shared_lock lock(table_mutex());
  for (const Entry& entry : table()) {
    if (!holds(entry, address)) continue;
    if (window != nullptr) *window = entry.window;
    return entry.mapping;
  }
  return nullptr;
}

std::shared_ptr<Mapping> find_file(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return nullptr;
  const std::shared_lock lock(table_mutex());
  for (const Entry& entry : table()) {
    if (entry.device == status.st_dev && entry.mapping->medium().identity().inode == status.st_ino)
      return entry.mapping;
  }
  return nullptr;
}

std::shared_ptr<Mapping> remove(const void* address) {
  const std::lock_guard lock(table_mutex());
  const auto found = std::find_if(table().begin(), table().end(), [&](const Entry& entry) {
    return entry.window.address == address;
  });
  if (found == table().end()) return nullptr;
  std::shared_ptr<Mapping> mapping = std::move(found->mapping);
  table().erase(found);
  return mapping;
}

}  // namespace pawl::open_mappings
