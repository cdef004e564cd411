// A copy of a file as its last durable commit left it, while the program that has it mapped goes
// on. docs/snapshot-copy.md says why that is right.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "medium/descriptor.h"
#include "snapshot/base_copy.h"

namespace pawl::snapshot {

struct Copied {
  CopyKind kind = CopyKind::copied;
  std::uint64_t records = 0;  // of the journal, that were replayed into the copy
  std::uint64_t bytes = 0;    // size of the copy
  unsigned attempts = 1;
};

// The file that is copied.  It is read only.
class Source {
 public:
  // The file at `path`, which may be a symbolic link, or another name than that which its journal
  // stands beside.  EBUSY: it is one of failure-atomic sections,
  // and open; one that is closed cannot be opened while this lives.
  static Result<Source> open(const std::string& path);
  Source(Source&&) noexcept;
  Source& operator=(Source&&) = delete;
  ~Source();

  const std::string& path() const;  // the real one
  int descriptor() const;

  // Fills `into`, whose content is lost.  The copy holds every commit that was acknowledged before
  // the call, perhaps later ones, and each whole.  It is not flushed.
  // EBUSY: writers came and went, or outran the copy, kAttemptsMax times.  EBADMSG, ENODATA and
  // ENOTSUP: as recovery would refuse the file.  EFBIG: its blocks cannot be shared, and it has
  // more than copied_bytes_max.
  Result<Copied> copy_into(DescriptorFile& into, std::uint64_t copied_bytes_max);

  static constexpr unsigned kAttemptsMax = 64;

 private:
  class File;
  explicit Source(std::string asked, std::unique_ptr<File> file);
  std::string asked_;  // the name, which may lead to another file by now
  std::unique_ptr<File> file_;
};

// Makes the file `to`: nobody finds it before it is whole and durable.  It has the mode of the file
// at `path`, its owner where that may be, and neither mark nor journal.
// EEXIST: there is one of that name, unless it may be replaced.  EINVAL: it is the file, or its
// journal.  EBUSY: as open() and copy_into(), or `to` has a journal itself.
// A file of failure-atomic sections is copied if check_sections(path) has nothing against it
// (fase::check_is_finished).
using CheckSections = std::function<Status(const std::string& path)>;
Result<Copied> make_snapshot(const std::string& path, const std::string& to, bool may_replace,
                             const CheckSections& check_sections);

}  // namespace pawl::snapshot
