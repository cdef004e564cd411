#include "preload/read_snapshots.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "medium/descriptor.h"
#include "medium/fork_safe_lock.h"
#include "medium/held_journal.h"
#include "medium/named_medium.h"
#include "medium/new_file.h"
#include "preload/inside.h"
#include "preload/patterns.h"
#include "preload/real.h"
#include "snapshot/committed_copy.h"

namespace pawl::preload {
namespace {

// In the file's directory, where blocks can be shared; or in memory, for who may not write there.
Result<Descriptor> make_file_for_copy(const std::string& path) {
  if (const auto directory = Directory::open(path.substr(0, path.rfind('/') + 1)); directory.ok()) {
    auto beside = NewFile::make_nameless(directory.value());
    if (beside.ok()) return Descriptor(beside.value().release());
  }
  Descriptor memory(::memfd_create("pawl-snapshot", MFD_CLOEXEC));
  if (memory.valid()) return memory;
  return FailedCall{errno, "cannot make a file for a copy of " + path};
}

// But the mark.  What cannot be given, as those of the system's own, a copy in memory or an
// ordinary user's cannot have.
void copy_attributes(int from, int to) {
  std::vector<char> names(XATTR_LIST_MAX);
  const ssize_t length = real().flistxattr(from, names.data(), names.size());
  std::vector<char> value;
  for (const char* name = names.data(); name < names.data() + length;
       name += std::strlen(name) + 1) {
    if (std::strcmp(name, kMarkAttribute) == 0) continue;
    value.resize(XATTR_SIZE_MAX);
    const ssize_t bytes = real().fgetxattr(from, name, value.data(), value.size());
    if (bytes >= 0) ::fsetxattr(to, name, value.data(), static_cast<std::size_t>(bytes), 0);
  }
}

struct ShownCopy {
  struct stat copy;
  struct stat original;
};

struct ShownCopies {
  ForkSafeLock lock;
  std::vector<ShownCopy> copies;  // a ring, once it is full
  std::size_t next = 0;
};

std::atomic<bool> has_made_copies{false};

// Never destroyed: calls come until the very end.
ShownCopies& shown_copies() {
  static ShownCopies& instance = *new ShownCopies;
  return instance;
}

// In a child nothing is known to be whole that a thread of its parent was about to change.
std::unique_lock<ForkSafeLock> lock_copies() {
  ShownCopies& shown = shown_copies();
  if (shown.lock.lock()) {
    new (&shown.copies) std::vector<ShownCopy>;
    shown.next = 0;
  }
  return {shown.lock, std::adopt_lock};
}

void note_copy(const ShownCopy& made) {
  const auto guard = lock_copies();
  ShownCopies& shown = shown_copies();
  if (shown.copies.size() < kShownCopiesMax)
    shown.copies.push_back(made);
  else
    shown.copies[shown.next++ % kShownCopiesMax] = made;
  has_made_copies.store(true);
}

// The number of a copy that is gone may be another file's by now, whose time of change differs.
bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino &&
         one.st_ctim.tv_sec == other.st_ctim.tv_sec && one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

Result<Descriptor> copy_of(const NamedFile& file, int flags) {
  auto source = snapshot::Source::open(file.real_path);
  if (!source.ok()) return source.status();
  auto copy = make_file_for_copy(file.real_path);
  if (!copy.ok()) return copy.status();
  DescriptorFile into(std::move(copy.value()), "a copy of " + file.real_path);
  ShownCopy made{};
  const bool is_known = real().fstat(source.value().descriptor(), &made.original) == 0;
  const auto copied = source.value().copy_into(into, kReadCopyBytesMax);
  if (!copied.ok()) return copied.status();
  copy_attributes(source.value().descriptor(), into.descriptor());
  constexpr int kKept = O_NONBLOCK | O_NOATIME;
  const std::string open_file = link_to_descriptor(into.descriptor());
  Descriptor shown(::open(open_file.c_str(), O_RDONLY | O_CLOEXEC | (flags & kKept)));
  if (!shown.valid()) return FailedCall{errno, "cannot open the copy of " + file.real_path};
  // For who finds the copy by its number; the owner is the reader.
  [[maybe_unused]] const int ignored = ::fchmod(into.descriptor(), file.status.st_mode & 0777);
  if (is_known && real().fstat(into.descriptor(), &made.copy) == 0) note_copy(made);
  return shown;
}

}  // namespace

bool is_written_elsewhere(const NamedFile& file) {
  if (!S_ISREG(file.status.st_mode) || !matches_a_pattern(file.real_path)) return false;
  const auto is_written = has_writer(file.real_path + kJournalSuffix);
  // Where that cannot be told the copy says why.
  return !is_written.ok() || is_written.value();
}

namespace {

// By another process.  A file of this one is in the table before it has a writer, and until it has
// none any more; and while the start lock is held, none begins.
bool is_written_by_others(const NamedFile& file) {
  if (!is_written_elsewhere(file)) return false;
  const std::lock_guard starting(start_lock());
  return table::of_inode(file.status.st_dev, file.status.st_ino) == nullptr &&
         is_written_elsewhere(file);
}

}  // namespace

Result<int> open_committed(const std::function<Result<std::optional<NamedFile>>()>& look_up_file,
                           int flags) {
  constexpr int kNew = O_CREAT | O_EXCL;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & kNew) == kNew || !has_patterns()) return -1;
  const auto found = look_up_file();
  if (!found.ok()) return found.status();
  const auto& file = found.value();
  if (!file || !is_written_by_others(*file)) return -1;
  const auto shown = copy_of(*file, flags);
  if (!shown.ok()) return shown.status();
  // A number that the program may close: Pawl's own it may not.
  const int number = real().fcntl(shown.value().get(),
                                  (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, nullptr);
  if (number < 0) return FailedCall{errno, "cannot open the copy of " + file->real_path};
  return number;
}

std::optional<struct stat> original_of_copy(const struct stat& copy) {
  if (copy.st_nlink != 0 || !has_made_copies.load() || !in_own_process()) return std::nullopt;
  const Inside working;
  const auto guard = lock_copies();
  const auto& copies = shown_copies().copies;
  const auto found = std::ranges::find_if(
      copies, [&](const ShownCopy& shown) { return is_same_file(shown.copy, copy); });
  if (found == copies.end()) return std::nullopt;
  return found->original;
}

}  // namespace pawl::preload
