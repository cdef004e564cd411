#include "mapping/open_mappings.h"

#include "mapping/file_turn.h"
#include "mapping/window_set.h"
#include "medium/fork_guard.h"
#include "medium/inherited_memory.h"
#include "medium/inherited_table.h"
#include "medium/own_process.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <vector>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace pawl::open_mappings {
namespace {

struct Entry {
  Window window;
  std::shared_ptr<Mapping> mapping;
  bool is_heap = false;
  std::uint64_t memory = number_of_memory();  // that whose window it is
};

// A file that is open without a mapping.
struct OwnFile {
  const void* owner;
  std::uint64_t device;
  std::uint64_t inode;
  const char* whose;
};

// What the lock-free question looks at.  Written under the table's lock.
constinit WindowSet windows_now;

std::vector<Entry>& table() {
  static auto* const entries = new std::vector<Entry>;
  return *entries;
}

std::vector<OwnFile>& own_files() {
  static auto* const files = new std::vector<OwnFile>;
  return *files;
}

constinit InheritedTable inherited;

void come_into_child(std::shared_mutex* mutex) {
  inherited.come([mutex](bool was_changing) {
    new (mutex) std::shared_mutex;
    if (!was_changing) return;
    new (&table()) std::vector<Entry>;
    new (&own_files()) std::vector<OwnFile>;
  });
}

// The thread sanitizer takes a mutex that is made anew for one that is still held.
void tell_sanitizer_unlocked([[maybe_unused]] std::shared_mutex* mutex) {
#ifdef __SANITIZE_THREAD__
  __tsan_mutex_pre_unlock(mutex, 0);
  __tsan_mutex_post_unlock(mutex, 0);
#endif
}

// Never destroyed: threads may still use mappings while the process exits.
std::shared_mutex& table_mutex() {
  static auto* const mutex = [] {
    auto* const made = new std::shared_mutex;
    // In the child it is made anew: it knows its holder by the thread's number, which is another's.
    guard_fork(made, {.before =
                          [made] {
                            come_into_child(made);
                            made->lock();
                          },
                      .in_parent = [made] { made->unlock(); },
                      .in_child =
                          [made] {
                            tell_sanitizer_unlocked(made);
                            new (made) std::shared_mutex;
                            inherited.has_come();
                          }});
    return made;
  }();
  come_into_child(mutex);
  return *mutex;
}

// While the table is changed.
class Change {
 public:
  Change() : lock_(table_mutex()), change_(inherited) {}
  ~Change() { note_windows(); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  static void note_windows();
  const std::lock_guard<std::shared_mutex> lock_;
  const InheritedTable::Change change_;
};

AddressRange range_of(const Window& window) {
  return pawl::range_of(window.address, window.length);
}

bool is_of_this_memory(const Entry& entry) { return entry.memory == number_of_memory(); }

void Change::note_windows() {
  windows_now.become([](const auto& take) {
    for (const Entry& entry : table()) {
      if (is_of_this_memory(entry)) take(range_of(entry.window));
    }
  });
}

// In a child: of what is still the copy of its parent's window.
bool is_left(const Entry& entry, const AddressRange& of) {
  const AddressRange common = range_of(entry.window).intersect(of);
  return !common.empty() && inherited_memory::holds(common.start(), common.bytes(), entry.memory);
}
bool is_left(const Entry& entry) { return is_left(entry, range_of(entry.window)); }

bool holds(const Entry& entry, const void* address) {
  const char* at = static_cast<const char*>(address);
  const bool is_inside =
      at >= entry.window.address && at < entry.window.address + entry.window.length;
  return is_inside && (is_of_this_memory(entry) || is_left(entry, pawl::range_of(address, 1)));
}

// Those of this memory first: of other memory there is only what refuses.
template <class Matches>
const Entry* find_entry(const Matches& matches) {
  const Entry* of_other_memory = nullptr;
  for (const Entry& entry : table()) {
    if (!matches(entry)) continue;
    if (is_of_this_memory(entry)) return &entry;
    if (of_other_memory == nullptr) of_other_memory = &entry;
  }
  return of_other_memory;
}

// What a child has nothing left of.
void drop_left_over() {
  std::erase_if(table(),
                [](const Entry& entry) { return !is_of_this_memory(entry) && !is_left(entry); });
}

}  // namespace

Status add(std::shared_ptr<Mapping> mapping, const Window& window) {
  const Change change;
  drop_left_over();
  const auto is_counted = [](const Entry& entry) {
    return !entry.is_heap && is_of_this_memory(entry);
  };
  const auto open = std::count_if(table().begin(), table().end(), is_counted);
  if (static_cast<std::size_t>(open) >= kOpenMappingsMax) {
    return Status::failure(ENFILE, PAWL_ERROR_TOO_MANY,
                           "this process has " + std::to_string(kOpenMappingsMax) +
                               " atomic mappings; unmap one first");
  }
  table().push_back({window, std::move(mapping)});
  return {};
}

void move(const Mapping& mapping, const Window& window) {
  const Change change;
  for (Entry& entry : table()) {
    if (entry.mapping.get() == &mapping) entry.window = window;
  }
}

void add_heap(std::shared_ptr<Mapping> mapping, const Window& window) {
  const Change change;
  table().push_back({window, std::move(mapping), true});
}

void remove_heap(const Mapping& mapping) {
  const Change change;
  std::erase_if(table(), [&](const Entry& entry) { return entry.mapping.get() == &mapping; });
}

void add_file(const void* owner, std::uint64_t device, std::uint64_t inode, const char* whose) {
  const Change change;
  own_files().push_back({owner, device, inode, whose});
}

void remove_file(const void* owner) {
  const Change change;
  std::erase_if(own_files(), [&](const OwnFile& file) { return file.owner == owner; });
}

bool may_have_windows_in(const AddressRange& range) { return windows_now.intersects(range); }

namespace {

// Of a window of other memory, what is left of it in this piece.
void add_left(const Entry& entry, const Piece& piece, std::vector<Piece>& pieces) {
  inherited_memory::Piece left;
  for (std::size_t place = 0; inherited_memory::next(place, left);) {
    Piece part = piece;
    part.range = piece.range.intersect({left.low, left.high});
    if (left.memory == entry.memory && !part.range.empty()) pieces.push_back(part);
  }
}

}  // namespace

std::vector<Piece> pieces_of(const AddressRange& range) {
  std::vector<Piece> windows;
  {
    const std::shared_lock lock(table_mutex());
    for (const Entry& entry : table()) {
      const AddressRange window = range_of(entry.window);
      const AddressRange common = window.intersect(range);
      if (common.empty()) continue;
      const Piece piece{common, window, entry.mapping, entry.is_heap};
      if (is_of_this_memory(entry))
        windows.push_back(piece);
      else
        add_left(entry, piece, windows);
    }
  }
  return with_gaps(range, std::move(windows));
}

std::shared_ptr<Mapping> find(const void* address, Window* window) {
  const std::shared_lock lock(table_mutex());
  const Entry* const found =
      find_entry([&](const Entry& entry) { return !entry.is_heap && holds(entry, address); });
  if (found == nullptr) return nullptr;
  if (window != nullptr) *window = found->window;
  return found->mapping;
}

FoundFile find_file(std::uint64_t device, std::uint64_t inode) {
  const std::shared_lock lock(table_mutex());
  const Entry* const found = find_entry([&](const Entry& entry) {
    const Medium& medium = entry.mapping->medium();
    return medium.device() == device && medium.identity().inode == inode &&
           (is_of_this_memory(entry) || is_left(entry));
  });
  if (found != nullptr && found->is_heap) return FoundFile{nullptr, "a heap"};
  if (found != nullptr) return FoundFile{found->mapping};
  for (const OwnFile& file : own_files()) {
    if (file.device == device && file.inode == inode) return FoundFile{nullptr, file.whose};
  }
  return FoundFile{};
}

std::shared_ptr<Mapping> remove(const Mapping& mapping, const void* address) {
  const Change change;
  const auto found = std::find_if(table().begin(), table().end(), [&](const Entry& entry) {
    return !entry.is_heap && entry.mapping.get() == &mapping && entry.window.address == address;
  });
  if (found == table().end()) return nullptr;
  std::shared_ptr<Mapping> removed = std::move(found->mapping);
  table().erase(found);
  return removed;
}

Result<bool> close(const Mapping& mapping, const void* address) {
  const FileTurn turn(FileTurn::To::open_or_close, mapping.medium());
  const std::shared_ptr<Mapping> removed = remove(mapping, address);
  if (removed == nullptr) return false;
  PAWL_TRY(removed->close());
  return true;
}

}  // namespace pawl::open_mappings
