#include "preload/read_snapshots.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <utility>

#include "medium/descriptor.h"
#include "medium/held_journal.h"
#include "medium/named_medium.h"
#include "medium/new_file.h"
#include "medium/parked_descriptors.h"
#include "medium/sections_file.h"
#include "preload/other_writers.h"
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

Result<Descriptor> copy_of(const NamedFile& file, int flags) {
  auto source = snapshot::Source::open(file.real_path);
  if (!source.ok()) return source.status();
  auto copy = make_file_for_copy(file.real_path);
  if (!copy.ok()) return copy.status();
  DescriptorFile into(std::move(copy.value()), "a copy of " + file.real_path);
  const auto copied = source.value().copy_into(into, kReadCopyBytesMax);
  if (!copied.ok()) return copied.status();
  constexpr int kKept = O_NONBLOCK | O_NOATIME;
  const std::string open_file = link_to_descriptor(into.descriptor());
  Descriptor shown(::open(open_file.c_str(), O_RDONLY | O_CLOEXEC | (flags & kKept)));
  if (!shown.valid()) return FailedCall{errno, "cannot open the copy of " + file.real_path};
  // What fstat() shows; the owner is the reader.
  [[maybe_unused]] const int ignored = ::fchmod(into.descriptor(), file.status.st_mode & 0777);
  return shown;
}

// What its program stores is in the file at once: there is nothing else to show.
bool is_one_of_sections(const NamedFile& file) {
  Descriptor opened = parked_descriptors::take(file.status, O_RDONLY);
  if (!opened.valid()) {
    const StandardNumbersTaken taken;
    opened = Descriptor(::open(file.real_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  }
  const bool has_them = opened.valid() && has_sections(opened.get());
  parked_descriptors::close(std::move(opened));
  return has_them;
}

}  // namespace

bool is_written_elsewhere(const NamedFile& file) {
  if (!S_ISREG(file.status.st_mode) || !matches_a_pattern(file.real_path)) return false;
  const auto written = has_other_writer(file);
  if (written.ok()) return written.value() && !is_one_of_sections(file);
  const auto by_journal = has_writer(file.real_path + kJournalSuffix);
  // Where that cannot be told the copy says why.
  return !by_journal.ok() || by_journal.value();
}

Result<int> open_committed(const std::function<Result<std::optional<NamedFile>>()>& look_up_file,
                           int flags) {
  constexpr int kNew = O_CREAT | O_EXCL;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & kNew) == kNew || !has_patterns()) return -1;
  const auto found = look_up_file();
  if (!found.ok()) return found.status();
  const auto& file = found.value();
  // A file of this process, or that it has inherited, shows what its mapping does.
  if (!file || table::of_inode(file->status.st_dev, file->status.st_ino) != nullptr ||
      !is_written_elsewhere(*file))
    return -1;
  const auto shown = copy_of(*file, flags);
  if (!shown.ok()) return shown.status();
  // A number that the program may close: Pawl's own it may not.
  const int number = real().fcntl(shown.value().get(),
                                  (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, nullptr);
  if (number < 0) return FailedCall{errno, "cannot open the copy of " + file->real_path};
  return number;
}

}  // namespace pawl::preload
