// Programs that read their directory: stores of many files find these so, and take each for theirs.
// A journal is none, and goes with its file.
#include "preload/interpose.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "mapping/border.h"
#include "medium/held_journal.h"
#include "medium/journal_name.h"
#include "medium/new_file.h"
#include "medium/regular_file.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/named_files.h"
#include "preload/patterns.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

// Locked by one, or gone since its name was read.
bool belongs_to_a_writer(int directory, const std::string& side) {
  const auto opened =
      open_regular(directory, side, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, side);
  if (!opened.ok()) return opened.status().error_number() == ENOENT;
  const auto is_written = has_writer(opened.value().get(), side);
  if (is_written.ok() && is_written.value()) return true;
  struct stat status{};  // a writer removes it, and then unlocks it
  return real().fstatat(directory, side.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 &&
         errno == ENOENT;
}

// Whether this is the journal of a file that is tracked, has a writer, or was left by a crash and
// is recovered now.  What removes, renames or opens such a file sees to its journal.  One that
// cannot be recovered is shown: it stays where its file is removed, and whoever empties the
// directory must see it.
Result<bool> goes_with_its_file(int directory, const std::string& journal) {
  const std::string name = journal.substr(0, journal.size() - std::strlen(kJournalSuffix));
  struct stat status{};
  // It went with its file while the directory was read.
  if (real().fstatat(directory, journal.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 &&
      errno == ENOENT)
    return true;
  const bool is_there = real().fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && !S_ISREG(status.st_mode)) return false;
  if (is_there && table::of_inode(status.st_dev, status.st_ino) != nullptr) return true;
  auto place = path_of_descriptor(directory);
  if (!place.ok()) return place.status();
  const std::string path = (place.value() == "/" ? "" : place.value()) + "/" + name;
  if (!matches_a_pattern(path)) return false;
  if (!is_there) return belongs_to_a_writer(directory, journal);  // it may be getting another name
  const Status recovered = recover_now({status, path});
  if (recovered.error_number() == EBUSY) return true;  // another process opens it, or recovers it
  return recovered.ok() &&
         real().fstatat(directory, journal.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0;
}

bool is_out_of_sight(int directory, const char* name) {
  // Of a journal while its file gets another name.
  const bool is_provisional = std::string_view(name).starts_with(kProvisionalPrefix);
  if (!is_provisional && !std::string_view(name).ends_with(kJournalSuffix)) return false;
  if (!in_own_process()) return false;
  if (!has_patterns() && table::is_empty()) return false;
  const int error_number = errno;
  bool is_hidden = false;
  {
    const Inside working;
    [[maybe_unused]] const Status shown_where_it_cannot_be_told = at_border([&]() -> Status {
      const Result<bool> goes = is_provisional ? Result<bool>(belongs_to_a_writer(directory, name))
                                               : goes_with_its_file(directory, name);
      is_hidden = goes.ok() && goes.value();
      return goes.status();
    });
  }
  errno = error_number;
  return is_hidden;
}

dirent* next_in_sight(DIR* stream) {
  for (;;) {
    dirent* const entry = real().readdir(stream);
    if (entry == nullptr || !is_out_of_sight(dirfd(stream), entry->d_name)) return entry;
  }
}

// Before the program learns the first name: it may ask for the size of each file when it does.
DIR* without_what_crashes_left(DIR* stream) {
  if (stream == nullptr || !has_patterns() || !in_own_process()) return stream;
  const int error_number = errno;
  const off_t start = real().lseek(dirfd(stream), 0, SEEK_CUR);
  while (next_in_sight(stream) != nullptr) {
  }
  seekdir(stream, start);
  errno = error_number;
  return stream;
}

// No place where a thread is cancelled, as libc's own is none.
DIR* open_directory(int from, const char* path) {
  int state = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  const int descriptor = real().openat(from, path, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = descriptor >= 0 ? real().fdopendir(descriptor) : nullptr;
  if (stream == nullptr && descriptor >= 0) {
    const int error_number = errno;
    real().close(descriptor);
    errno = error_number;
  }
  ::pthread_setcancelstate(state, nullptr);
  return without_what_crashes_left(stream);
}

using Chooses = int (*)(const dirent*);
using Compares = int (*)(const dirent**, const dirent**);

// What a program gets of scandir(3): it is the program's to free, each for itself.
class FoundEntries {
 public:
  FoundEntries() = default;
  FoundEntries(const FoundEntries&) = delete;
  FoundEntries& operator=(const FoundEntries&) = delete;
  ~FoundEntries() {
    for (std::size_t i = 0; i < count_; ++i) std::free(entries_[i]);
    std::free(entries_);
  }

  bool add(const dirent& entry) {
    if (count_ == room_) {
      const std::size_t room = 2 * room_ + 16;
      void* const larger = std::realloc(entries_, room * sizeof(dirent*));
      if (larger == nullptr) return false;
      entries_ = static_cast<dirent**>(larger);
      room_ = room;
    }
    void* const copy = std::malloc(entry.d_reclen);
    if (copy == nullptr) return false;
    entries_[count_++] = static_cast<dirent*>(std::memcpy(copy, &entry, entry.d_reclen));
    return true;
  }

  void sort(Compares compares) {
    if (count_ == 0) return;
    ::qsort_r(
        entries_, count_, sizeof(dirent*),
        [](const void* left, const void* right, void* by) {
          const auto entry = [](const void* at) {
            return static_cast<const dirent**>(const_cast<void*>(at));
          };
          return (*static_cast<Compares*>(by))(entry(left), entry(right));
        },
        &compares);
  }

  int release(dirent*** entries) {
    *entries = entries_;
    entries_ = nullptr;
    return static_cast<int>(std::exchange(count_, 0));
  }

 private:
  dirent** entries_ = nullptr;
  std::size_t count_ = 0;
  std::size_t room_ = 0;
};

// libc's own reads by calls that nothing stands before.
int scan_directory(int from, const char* path, dirent*** entries, Chooses chooses,
                   Compares compares) {
  DIR* const stream = open_directory(from, path);
  if (stream == nullptr) return -1;
  const int error_number = errno;
  FoundEntries found;
  errno = 0;
  while (const dirent* const entry = next_in_sight(stream)) {
    if ((chooses == nullptr || chooses(entry) != 0) && !found.add(*entry)) break;
    errno = 0;  // which the program's own function may set
  }
  const int failed = errno;
  ::closedir(stream);
  errno = failed == 0 ? error_number : failed;
  if (failed != 0) return -1;
  if (compares != nullptr) found.sort(compares);
  return found.release(entries);
}

}  // namespace

PAWL_INTERPOSE DIR* opendir(const char* path) {
  if (PAWL_CALLED_BY_US()) return real().opendir(path);
  return without_what_crashes_left(real().opendir(path));
}

PAWL_INTERPOSE DIR* fdopendir(int descriptor) {
  if (PAWL_CALLED_BY_US()) return real().fdopendir(descriptor);
  return without_what_crashes_left(real().fdopendir(descriptor));
}

PAWL_INTERPOSE dirent* readdir(DIR* stream) {
  return PAWL_CALLED_BY_US() ? real().readdir(stream) : next_in_sight(stream);
}
PAWL_ALSO_KNOWN_AS(readdir64, readdir);

PAWL_INTERPOSE int readdir64_r(DIR* stream, dirent64* entry, dirent64** result) {
  for (;;) {
    const int outcome = real().readdir64_r(stream, entry, result);
    if (outcome != 0 || *result == nullptr || PAWL_CALLED_BY_US() ||
        !is_out_of_sight(dirfd(stream), entry->d_name))
      return outcome;
  }
}
PAWL_ALSO_KNOWN_AS(readdir_r, readdir64_r);

PAWL_INTERPOSE int scandirat(int from, const char* path, dirent*** entries, Chooses chooses,
                             Compares compares) {
  return scan_directory(from, path, entries, chooses, compares);
}
PAWL_ALSO_KNOWN_AS(scandirat64, scandirat);

PAWL_INTERPOSE int scandir(const char* path, dirent*** entries, Chooses chooses,
                           Compares compares) {
  return scan_directory(AT_FDCWD, path, entries, chooses, compares);
}
PAWL_ALSO_KNOWN_AS(scandir64, scandir);

// libc's own takes the reading of directories from its caller.
PAWL_INTERPOSE int glob(const char* pattern, int flags, int (*on_error)(const char*, int),
                        glob_t* found) noexcept {
  if ((flags & GLOB_ALTDIRFUNC) != 0) return real().glob(pattern, flags, on_error, found);
  found->gl_opendir = [](const char* path) -> void* { return open_directory(AT_FDCWD, path); };
  found->gl_readdir = [](void* stream) { return next_in_sight(static_cast<DIR*>(stream)); };
  found->gl_closedir = [](void* stream) { ::closedir(static_cast<DIR*>(stream)); };
  found->gl_lstat = ::lstat;
  found->gl_stat = ::stat;
  const int outcome = real().glob(pattern, flags | GLOB_ALTDIRFUNC, on_error, found);
  found->gl_flags &= ~GLOB_ALTDIRFUNC;
  return outcome;
}
PAWL_ALSO_KNOWN_AS(glob64, glob);

}  // namespace pawl::preload
