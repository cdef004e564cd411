#include "preload/tracked_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <unordered_map>
#include <utility>

#include "mapping/window_set.h"
#include "medium/inherited_memory.h"
#include "medium/inherited_table.h"
#include "preload/real.h"

namespace pawl::preload {

std::mutex& start_lock() {
  constinit static std::mutex lock;  // without a destructor: calls come until the very end
  return lock;
}

namespace table {
namespace {

struct Entry {
  TrackedFilePointer file;
  AddressRange window;
  std::size_t place;  // in `inodes`, for as long as it lasts
};

struct Table {
  std::mutex lock;
  std::vector<Entry> entries;  // in their order
  std::uint64_t last_order = 0;
  std::unordered_map<int, TrackedFilePointer> by_descriptor;
};

// Never destroyed: destructors of the program and of other libraries run after ours.
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

// What the lock-free questions look at.  Written under the table's lock.
std::array<std::atomic<bool>, kDescriptorsMax> descriptor_tracked;
std::atomic<std::size_t> file_count{0};
constinit WindowSet windows_now;
struct Inode {
  std::atomic<dev_t> device{0};
  std::atomic<ino_t> number{0};  // 0: none
};
std::array<Inode, kTrackedFilesMax> inodes;

constinit InheritedTable inherited;

std::mutex& table_lock() {
  inherited.come([](bool was_changing) {
    new (&table().lock) std::mutex;
    if (was_changing) new (&table()) Table;  // `inodes` still has what the parent mapped
  });
  return table().lock;
}

// While the table is changed.
class Change {
 public:
  Change() : guard_(table_lock()), change_(inherited) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  const std::lock_guard<std::mutex> guard_;
  const InheritedTable::Change change_;
};

bool in_table(int descriptor) { return descriptor >= 0 && descriptor < kDescriptorsMax; }

// From what the kernel knows: a server that is asked may let the table wait.
bool is_of(int descriptor, const TrackedFile& file) {
  struct statx known{};
  if (::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &known) == 0)
    return known.stx_ino == file.inode &&
           makedev(known.stx_dev_major, known.stx_dev_minor) == file.device;
  struct stat status{};  // a sandbox may know no statx()
  return real().fstat(descriptor, &status) == 0 && status.st_dev == file.device &&
         status.st_ino == file.inode;
}

bool is_there(const Entry& entry) {
  return !entry.file->is_of_other_memory() ||
         inherited_memory::holds(entry.window.start(), entry.window.bytes(), entry.file->memory);
}

// What a child has neither memory nor a descriptor of.
void drop_left_over(Table& held) {
  std::erase_if(held.entries, [&](const Entry& entry) {
    const auto is_of_entry = [&](const auto& of) { return of.second == entry.file; };
    if (is_there(entry) ||
        std::any_of(held.by_descriptor.begin(), held.by_descriptor.end(), is_of_entry))
      return false;
    inodes[entry.place].number.store(0);
    return true;
  });
}

// Only ever asked for under the lock.
void note_windows(const Table& held) {
  windows_now.become([&](const auto& take) {
    for (const Entry& entry : held.entries) {
      if (!entry.window.empty() && !entry.file->is_of_other_memory()) take(entry.window);
    }
  });
  file_count.store(held.entries.size());
}

}  // namespace

bool is_empty() { return file_count.load() == 0; }

bool may_be_tracked(int descriptor) {
  return in_table(descriptor) && descriptor_tracked[static_cast<std::size_t>(descriptor)].load();
}

bool may_have_windows_in(const AddressRange& range) { return windows_now.intersects(range); }

bool has_inode(dev_t device, ino_t inode) {
  return std::any_of(inodes.begin(), inodes.end(), [&](const Inode& held) {
    return held.number.load() == inode && held.device.load() == device;
  });
}

TrackedFilePointer of_descriptor(int descriptor) {
  if (!may_be_tracked(descriptor)) return nullptr;
  const std::lock_guard guard(table_lock());
  const auto found = table().by_descriptor.find(descriptor);
  return found == table().by_descriptor.end() ? nullptr : found->second;
}

TrackedFilePointer of_inode(dev_t device, ino_t inode) {
  if (is_empty()) return nullptr;
  const std::lock_guard guard(table_lock());
  TrackedFilePointer of_other_memory;
  for (const Entry& entry : table().entries) {
    if (entry.file->inode != inode || entry.file->device != device) continue;
    if (!entry.file->is_of_other_memory()) return entry.file;
    of_other_memory = entry.file;
  }
  return of_other_memory;
}

std::vector<TrackedFilePointer> with_windows_in(const AddressRange& range) {
  std::vector<TrackedFilePointer> found;
  if (!may_have_windows_in(range)) return found;
  const std::lock_guard guard(table_lock());
  for (const Entry& entry : table().entries) {
    if (!entry.file->is_of_other_memory() && !entry.window.intersect(range).empty())
      found.push_back(entry.file);
  }
  return found;
}

std::vector<InheritedPart> inherited_in(const AddressRange& range) {
  std::vector<InheritedPart> found;
  if (!may_have_windows_in(range) || !inherited_memory::any()) return found;
  const std::lock_guard guard(table_lock());
  for (const Entry& entry : table().entries) {
    inherited_memory::Piece piece;
    for (std::size_t place = 0; inherited_memory::next(place, piece);) {
      const AddressRange part = entry.window.intersect(range).intersect({piece.low, piece.high});
      if (piece.memory == entry.file->memory && !part.empty()) found.push_back({part, entry.file});
    }
  }
  return found;
}

std::vector<TrackedFilePointer> all() {
  std::vector<TrackedFilePointer> files;
  if (is_empty()) return files;
  const std::lock_guard guard(table_lock());
  for (const Entry& entry : table().entries) files.push_back(entry.file);
  return files;
}

std::size_t copy_all(std::span<TrackedFilePointer, kTrackedFilesMax> into) {
  const std::lock_guard guard(table_lock());
  std::size_t count = 0;
  for (const Entry& entry : table().entries) into[count++] = entry.file;
  return count;
}

TrackedFilePointer first_behind(std::uint64_t order) {
  const std::lock_guard guard(table_lock());
  for (const Entry& entry : table().entries) {
    if (entry.file->order > order) return entry.file;
  }
  return nullptr;
}

TrackedFilePointer lost_file() {
  const std::lock_guard guard(table_lock());
  for (const Entry& entry : table().entries) {
    if (entry.file->is_lost && !entry.file->inherited) return entry.file;
  }
  return nullptr;
}

bool insert(const TrackedFilePointer& file) {
  const Change change;
  if (table().entries.size() >= kTrackedFilesMax) drop_left_over(table());
  if (table().entries.size() >= kTrackedFilesMax) return false;
  const auto place = std::find_if(inodes.begin(), inodes.end(),
                                  [](const Inode& held) { return held.number.load() == 0; });
  if (place == inodes.end()) return false;  // the parent's, in a child that begins anew
  file->order = ++table().last_order;
  table().entries.push_back({file, {}, static_cast<std::size_t>(place - inodes.begin())});
  place->device.store(file->device);
  place->number.store(file->inode);
  note_windows(table());
  return true;
}

void erase(const TrackedFile& file) {
  const Change change;
  std::erase_if(table().by_descriptor, [&](const auto& entry) {
    if (entry.second.get() != &file) return false;
    descriptor_tracked[static_cast<std::size_t>(entry.first)].store(false);
    return true;
  });
  std::erase_if(table().entries, [&](const Entry& entry) {
    if (entry.file.get() != &file) return false;
    inodes[entry.place].number.store(0);
    return true;
  });
  note_windows(table());
}

bool attach(int descriptor, const TrackedFilePointer& file) {
  if (!in_table(descriptor)) return false;
  const Change change;
  const auto [place, is_new] = table().by_descriptor.try_emplace(descriptor);
  // In this order: who closes the number meanwhile finds it here behind that, or is seen here.
  auto& is_tracked = descriptor_tracked[static_cast<std::size_t>(descriptor)];
  is_tracked.store(true);
  if (is_of(descriptor, *file)) {
    place->second = file;
  } else if (is_new) {
    is_tracked.store(false);
    table().by_descriptor.erase(place);
  }
  return true;
}

TrackedFilePointer detach(int descriptor) {
  if (!may_be_tracked(descriptor)) return nullptr;
  const Change change;
  descriptor_tracked[static_cast<std::size_t>(descriptor)].store(false);
  auto node = table().by_descriptor.extract(descriptor);
  return node.empty() ? nullptr : std::move(node.mapped());
}

void detach_from(const TrackedFile& file, int descriptor) {
  const Change change;
  const auto found = table().by_descriptor.find(descriptor);
  if (found == table().by_descriptor.end() || found->second.get() != &file) return;
  descriptor_tracked[static_cast<std::size_t>(descriptor)].store(false);
  table().by_descriptor.erase(found);
}

std::vector<int> descriptors_of(const TrackedFile& file) {
  std::vector<int> found;
  const std::lock_guard guard(table_lock());
  for (const auto& [descriptor, owner] : table().by_descriptor) {
    if (owner.get() == &file) found.push_back(descriptor);
  }
  return found;
}

bool has_descriptors(const TrackedFile& file) {
  const std::lock_guard guard(table_lock());
  return std::any_of(table().by_descriptor.begin(), table().by_descriptor.end(),
                     [&](const auto& entry) { return entry.second.get() == &file; });
}

std::vector<int> descriptors_between(unsigned first, unsigned last) {
  std::vector<int> found;
  if (is_empty()) return found;
  const unsigned end = std::min(last, static_cast<unsigned>(kDescriptorsMax - 1));
  for (unsigned descriptor = first; descriptor <= end; ++descriptor) {
    if (descriptor_tracked[descriptor].load()) found.push_back(static_cast<int>(descriptor));
  }
  return found;
}

void set_window(const TrackedFile& file, const AddressRange& range) {
  const Change change;
  for (Entry& entry : table().entries) {
    if (entry.file.get() == &file) entry.window = range;
  }
  note_windows(table());
}

AddressRange window_of(const TrackedFile& file) {
  const std::lock_guard guard(table_lock());
  for (const Entry& entry : table().entries) {
    if (entry.file.get() == &file && is_there(entry)) return entry.window;
  }
  return {};
}

void lock_for_fork() { table_lock().lock(); }
void unlock_after_fork() {
  inherited.has_come();
  table().lock.unlock();
}

}  // namespace table

}  // namespace pawl::preload
