#include "snapshot/committed_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>

#include "journal/advice.h"
#include "journal/membership.h"
#include "journal/reader.h"
#include "journal/replay.h"
#include "medium/named_medium.h"
#include "medium/new_file.h"
#include "medium/parked_descriptors.h"
#include "medium/permissions.h"
#include "medium/regular_file.h"
#include "medium/sections_file.h"
#include "snapshot/change_watch.h"

namespace pawl::snapshot {
namespace {

// The time of a change is that of a tick: two within one tick look alike.  A tick is one of the
// kernel, or, where the file system keeps no parts of a second, up to two seconds (FAT).
constexpr std::uint64_t kTickNsMax = 20'000'000;
constexpr std::uint64_t kCoarseTickNsMax = 2'020'000'000;
constexpr std::uint64_t kSecondNs = 1'000'000'000;
// What a reader says of a journal that somebody writes is believed when it says so several times.
constexpr unsigned kDoubtsMax = 4;
constexpr long kPauseNs = 2'000'000;

void pause(std::uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / kSecondNs), static_cast<long>(ns % kSecondNs)};
  ::nanosleep(&time, nullptr);
}

std::uint64_t ns_of(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * kSecondNs +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Differs when anything about the file did, a mark that came and went included.
struct Stamp {
  std::uint64_t change_ns = 0;
  std::uint64_t content_ns = 0;
  off_t bytes = 0;
  bool operator==(const Stamp&) const = default;
};

Result<Stamp> stamp_of(int descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return FailedCall{errno, "cannot stat " + path};
  return Stamp{ns_of(status.st_ctim), ns_of(status.st_mtim), status.st_size};
}

// How long the tick in which the file was changed may still last: another change would not show.
// A time to come is that of another clock, which proves nothing.
std::uint64_t ns_of_doubt(const Stamp& stamp) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::uint64_t now_ns = ns_of(now);
  if (stamp.change_ns > now_ns) return kTickNsMax;
  const bool is_coarse = stamp.change_ns % kSecondNs == 0;
  const std::uint64_t end_ns = stamp.change_ns + (is_coarse ? kCoarseTickNsMax : kTickNsMax);
  return end_ns > now_ns ? end_ns - now_ns : 0;
}

// What may be the truth about a journal, or what is seen of one that changes just now.
bool speaks_of_content(const Status& status) {
  const int error_number = status.error_number();
  return error_number == EBADMSG || error_number == ENODATA || error_number == ENOTSUP;
}

Status with_name(const std::string& journal, const Status& status) {
  return status.prefixed(journal + ": ");
}

Status too_busy(const std::string& path) {
  return Status::failure(
      EBUSY, PAWL_ERROR_COPY_OUTRUN,
      path +
          " has no moment to be copied in: programs map and unmap it all the time, write "
          "to it without Pawl, or commit more than its journal could keep. Try again when "
          "it is quieter, or make room for the journal beside it");
}

using journal::Reader;

}  // namespace

// As for looking: nothing of it is ever changed.
class Source::File final : public NamedMedium {
 public:
  explicit File(NamedFile file) : NamedMedium(std::move(file)) {}
  // The descriptor may live on (parked_descriptors.h).
  ~File() override {
    if (is_locked_) set_sections_lock(descriptor(), F_UNLCK);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  MediumFile& base() override { return base_file(); }
  int descriptor() { return base_file().descriptor(); }
  // Of one of failure-atomic sections: what its program stores is in the file at once, and a copy
  // would have some of it.
  Status keep_closed() {
    is_locked_ = set_sections_lock(descriptor(), F_RDLCK) == 0;
    if (is_locked_) return {};
    if (errno != EAGAIN && errno != EACCES) return FailedCall{errno, "cannot lock " + path()};
    return Status::failure(EBUSY, PAWL_ERROR_IN_USE,
                           path() +
                               " is open (pawl_fase_open), and a copy of it would be torn; "
                               "copy it when its program has closed it");
  }

  // That which the mark says the journal stands beside; empty: this one, or there is none.
  std::string name_of_writer() {
    const auto found = mark();
    if (!found.ok() || !found.value().has_value()) return {};
    const std::string& journal = found.value()->journal_path;
    if (!journal.starts_with('/') || !journal.ends_with(kJournalSuffix)) return {};
    std::string name = journal.substr(0, journal.size() - std::strlen(kJournalSuffix));
    return name == path() ? std::string() : name;
  }

  // Nothing: what was seen did not fit together, and is to be looked at again.
  using Attempt = Result<std::optional<Copied>>;
  Attempt try_to_copy(DescriptorFile& into, std::uint64_t copied_bytes_max);

 private:
  Result<std::unique_ptr<MediumFile>> open_side_file(const std::string& name) override {
    return Status::failure(EROFS, name + " is open for reading only");
  }
  // Nothing while the file is only about to be opened, too: it holds all that there is.
  Result<std::optional<Mark>> mark_of_commits() {
    auto found = mark();
    if (found.ok() && found.value().has_value() && found.value()->is_opening)
      return std::optional<Mark>{};
    return found;
  }
  enum class Beside { nothing, member };  // what side file there may be, of a file without mark
  Attempt copy_clean(DescriptorFile& into, Beside beside);
  Attempt copy_in_group(HeldJournal& own, const journal::GroupFile& group, DescriptorFile& into);
  Attempt copy_with_journal(HeldJournal& journal, DescriptorFile& into);
  Attempt copy_base_and_records(HeldJournal& journal, const journal::Header& start,
                                DescriptorFile& into);
  Status check_as_recovery_does(HeldJournal& journal, Reader& reader);

  bool is_locked_ = false;
  std::uint64_t copied_bytes_max_ = 0;
  std::uint64_t number_ = 0;  // of the file, in the journal that has its records
};

Source::Source(std::string asked, std::unique_ptr<File> file)
    : asked_(std::move(asked)), file_(std::move(file)) {}
Source::Source(Source&&) noexcept = default;
Source::~Source() = default;
const std::string& Source::path() const { return file_->path(); }
int Source::descriptor() const { return file_->descriptor(); }

Result<Source> Source::open(const std::string& path) {
  auto file = open_named_file(path, true);
  if (!file.ok()) return file.status();
  auto source = std::make_unique<File>(std::move(file.value()));
  // By the name that its writer knows it by, if there is another.
  if (const std::string other = source->name_of_writer(); !other.empty()) {
    auto beside_journal = open_named_file(other, true);
    if (beside_journal.ok() && beside_journal.value().identity == source->identity() &&
        beside_journal.value().device == source->device())
      source = std::make_unique<File>(std::move(beside_journal.value()));
  }
  if (has_sections(source->descriptor())) PAWL_TRY(source->keep_closed());
  return Source(path, std::move(source));
}

Source::File::Attempt Source::File::try_to_copy(DescriptorFile& into,
                                                std::uint64_t copied_bytes_max) {
  copied_bytes_max_ = copied_bytes_max;
  // In this order: a mark is made after its journal, and goes before it.
  auto marked = mark_of_commits();
  if (!marked.ok()) return marked.status();
  auto journal = hold_journal();
  if (!journal.ok()) {
    if (journal.status().error_number() != ENOENT) return journal.status();
    if (marked.value().has_value()) return journal::missing_journal(*this, *marked.value());
    return copy_clean(into, Beside::nothing);
  }
  auto own = Reader::open(journal.value().file());
  if (own.ok() && own.value().listed().role == journal::Role::member) {
    const journal::GroupFile& group = own.value().listed().files.front();
    auto may_lack = journal::may_lack_commits(*this, own.value().header().journal_id, group.name);
    if (!may_lack.ok()) return may_lack.status();
    if (!may_lack.value()) return copy_clean(into, Beside::member);
    return copy_in_group(journal.value(), group, into);
  }
  number_ = 0;
  return copy_with_journal(journal.value(), into);
}

// What was committed stands in the group's journal; that the file is in it, in its own side file.
Source::File::Attempt Source::File::copy_in_group(HeldJournal& own, const journal::GroupFile& group,
                                                  DescriptorFile& into) {
  const std::string& name = group.name;
  auto file = open_group_file(name);
  if (file.status().error_number() == EPERM) return file.status();
  if (!file.ok()) {
    return Status::failure(ENODATA, PAWL_ERROR_GROUP_FILE_MISSING,
                           path() + " was left open in the group " + name +
                               ", whose file cannot be opened: " + file.status().text());
  }
  File medium(std::move(file.value()));
  PAWL_TRY(journal::check_owner_of_group(medium, *this));
  auto journal = medium.hold_journal();
  if (!journal.ok())
    return Status::failure(ENODATA, PAWL_ERROR_GROUP_FILE_MISSING, journal.status().text());
  PAWL_TRY(journal::check_writers_of_group(medium, *this));
  number_ = group.number;
  auto copied = copy_with_journal(journal.value(), into);
  // It left the group meanwhile, or was recovered.
  if (copied.ok() && !own.has_its_name()) return std::optional<Copied>{};
  return copied;
}

// Without mark and journal the file is as its last commit left it, unless a writer comes.
Source::File::Attempt Source::File::copy_clean(DescriptorFile& into, Beside beside) {
  const std::optional<Copied> again;
  const auto has_journal = [&] {
    return beside == Beside::nothing && ::access(journal_path().c_str(), F_OK) == 0;
  };
  const ChangeWatch changes(descriptor());
  auto before = stamp_of(descriptor(), path());
  if (!before.ok()) return before.status();
  if (!changes.sees_all()) {
    if (const std::uint64_t doubt_ns = ns_of_doubt(before.value()); doubt_ns > 0) {
      pause(doubt_ns);
      return again;
    }
  }
  // Its journal stands beside another name, and no mark says which.
  if (!can_mark()) PAWL_TRY(check_has_no_writer());
  // Seen after the watch and the stamp: a writer that comes later marks the file, and is seen.
  auto marked = mark_of_commits();
  if (!marked.ok()) return marked.status();
  if (marked.value().has_value() || has_journal()) return again;
  auto kind = copy_base(descriptor(), into.descriptor(), copied_bytes_max_);
  if (!kind.ok()) return kind.status();
  auto after = stamp_of(descriptor(), path());
  if (!after.ok()) return after.status();
  // The watch last: where there are no marks a writer whose journal is gone has made all its calls.
  if (after.value() != before.value() || has_journal() || changes.has_seen_one()) return again;
  return std::optional<Copied>{
      Copied{kind.value(), 0, static_cast<std::uint64_t>(before.value().bytes), 1}};
}

// Of a journal without a writer, from where it begins.
Status Source::File::check_as_recovery_does(HeldJournal& journal, Reader& reader) {
  if (number_ != 0)
    PAWL_TRY(journal::check_number(*this, journal.path(), reader.listed(), number_));
  const auto is_written = journal.has_writer();
  if (!is_written.ok()) return is_written.status();
  const bool has_writer = is_written.value();
  bool has_records = false;
  for (;;) {
    auto record = reader.next();
    if (!record.ok()) return record.status();
    if (!record.value().has_value()) break;
    has_records = true;
    if (has_writer) break;
  }
  auto evidence = has_writer ? Result<journal::Loss>(journal::Loss{}) : reader.evidence_of_loss();
  if (!evidence.ok()) return evidence.status();
  PAWL_TRY(journal::check_bond(
      *this, reader.header(),
      {.is_of_group = number_ != 0, .has_records = has_records || evidence.value().any()}));
  if (!evidence.value().any()) return {};
  return Status::failure(EBADMSG, evidence.value().code,
                         journal_path() + " is damaged: " + evidence.value().text + ". " +
                             journal::restore_or_accept_loss());
}

Source::File::Attempt Source::File::copy_with_journal(HeldJournal& journal, DescriptorFile& into) {
  auto before = Reader::open(journal.file());
  if (!before.ok()) return with_name(journal_path(), before.status());
  const journal::Header start = before.value().header();
  PAWL_TRY(journal.keep_from(start.tail_sequence));
  PAWL_TRY(check_as_recovery_does(journal, before.value()));
  auto copied = copy_base_and_records(journal, start, into);
  if (copied.ok() || copied.status().error_number() != ENOSPC) return copied;
  // The journal may have taken the room, because it is held: the writer's next commit gives it
  // back.
  auto bytes = journal.file().size();
  if (!bytes.ok() || bytes.value() <= start.journal_bytes) return copied;
  PAWL_TRY(into.resize(0));
  return std::optional<Copied>{};
}

Source::File::Attempt Source::File::copy_base_and_records(HeldJournal& journal,
                                                          const journal::Header& start,
                                                          DescriptorFile& into) {
  const std::optional<Copied> again;
  // The base holds everything before `start`, and of what comes after it any bytes of any records.
  auto kind = copy_base(descriptor(), into.descriptor(), copied_bytes_max_);
  if (!kind.ok()) return kind.status();
  Copied copied{kind.value(), 0, 0, 1};

  // Opened now: what stands in the base stands in the journal as it is from here on.
  journal.forget_what_was_read();
  auto reader = Reader::open(journal.file());
  if (!reader.ok()) return with_name(journal_path(), reader.status());
  if (reader.value().header().epoch != start.epoch) return again;
  reader.value().begin_at(start.tail_offset, start.tail_sequence);
  std::uint64_t next_sequence = start.tail_sequence;
  for (;;) {
    auto record = reader.value().next();
    if (!record.ok()) return with_name(journal_path(), record.status());
    if (!record.value().has_value()) break;
    next_sequence = record.value()->header.sequence + 1;
    copied.records += 1;
    PAWL_TRY(journal::apply_record(into, number_, reader.value(), *record.value(), {}));
  }
  // The last one may have been read before its writer's flush: the copy must not come to know what
  // the file then forgets.
  PAWL_TRY(journal.file().flush());

  // Nothing from the first record on was dropped before it was read; and no other writer came.
  auto after = Reader::open(journal.file());
  if (!after.ok()) return with_name(journal_path(), after.status());
  if (after.value().header().epoch != start.epoch ||
      after.value().header().tail_sequence > next_sequence || !journal.has_its_name())
    return again;
  auto bytes = into.size();
  if (!bytes.ok()) return bytes.status();
  copied.bytes = bytes.value();
  return std::optional<Copied>{copied};
}

Result<Copied> Source::copy_into(DescriptorFile& into, std::uint64_t copied_bytes_max) {
  unsigned doubts = 0;
  for (unsigned attempt = 1; attempt <= kAttemptsMax; ++attempt) {
    auto copied = file_->try_to_copy(into, copied_bytes_max);
    if (!copied.ok()) {
      // A writer by another name, which was not looked for, may have stepped aside.
      const bool is_in_use = copied.status().code() == PAWL_ERROR_IN_USE;
      const bool is_doubtful = speaks_of_content(copied.status()) && ++doubts < kDoubtsMax;
      if (!is_doubtful && (!is_in_use || attempt >= kAttemptsMax)) return copied.status();
      pause(kPauseNs);
    } else if (copied.value().has_value()) {
      copied.value()->attempts = attempt;
      return *copied.value();
    } else {
      doubts = 0;
      pause(kPauseNs);
    }
    // The name may lead to another file, and the file may have another one.
    auto renewed = Source::open(asked_);
    if (!renewed.ok()) return renewed.status();
    file_ = std::move(renewed.value().file_);
  }
  return too_busy(path());
}

namespace {

// "DIR/" and what is in it.
Result<std::string> directory_of(const std::string& to) {
  const std::size_t slash = to.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : to.substr(0, slash + 1);
  char real[PATH_MAX];
  if (::realpath(directory.c_str(), real) == nullptr)
    return FailedCall{errno, "cannot find the directory " + directory};
  const std::string found = real;
  return found == "/" ? found : found + "/";
}

// A name shows neither that a file is open, for it may have been renamed, nor that it is a journal.
Status check_may_go(const std::string& to) {
  auto found = open_regular(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (!found.ok()) {
    return found.status().with_text(
        found.status().text() +
        ", and it may be a file that is in use, or a journal. Remove it "
        "yourself, or choose another name");
  }
  const int target = found.value().get();
  WriterNotices notices;
  const Status checked = check_has_no_commits(target, to, notices);
  parked_descriptors::close(std::move(found.value()));
  return checked;
}

Status check_target(const Source& source, const std::string& to) {
  const auto refuse = [&](int error_number, pawl_error code, const char* reason) {
    return Status::failure(error_number, code, to + " " + reason);
  };
  if (to == source.path() + kJournalSuffix)
    return refuse(EINVAL, PAWL_ERROR_INVALID_ARGUMENT,
                  "is where the journal of the file stands; choose another name");
  struct stat present{};
  struct stat copied{};
  const bool is_there = ::lstat(to.c_str(), &present) == 0;
  if (is_there && ::fstat(source.descriptor(), &copied) == 0 && present.st_ino == copied.st_ino &&
      present.st_dev == copied.st_dev)
    return refuse(EINVAL, PAWL_ERROR_INVALID_ARGUMENT, "is the file itself; choose another name");
  PAWL_TRY(check_has_no_side_file(to));
  if (!is_there) return {};
  if (S_ISDIR(present.st_mode))
    return refuse(EISDIR, PAWL_ERROR_INVALID_ARGUMENT, "is a directory; name a file in it");
  return S_ISREG(present.st_mode) ? check_may_go(to) : Status{};
}

}  // namespace

Result<Copied> make_snapshot(const std::string& path, const std::string& to, bool may_replace,
                             const CheckSections& check_sections) {
  auto source = Source::open(path);
  if (!source.ok()) return source.status();
  if (has_sections(source.value().descriptor())) PAWL_TRY(check_sections(source.value().path()));
  auto path_of_directory = directory_of(to);
  if (!path_of_directory.ok()) return path_of_directory.status();
  auto directory = Directory::open(path_of_directory.value());
  if (!directory.ok()) return directory.status();
  const std::string name = to.substr(to.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..")
    return Status::failure(EISDIR, PAWL_ERROR_INVALID_ARGUMENT,
                           "'" + to + "' is a directory; name a file in it");
  const std::string target = directory.value().path() + name;
  PAWL_TRY(check_target(source.value(), target));
  if (struct stat present{}; !may_replace && ::lstat(target.c_str(), &present) == 0) {
    // Before all of it is copied for nothing.
    return Status::failure(EEXIST, PAWL_ERROR_COPY_TARGET_EXISTS,
                           target +
                               " exists already; remove it, choose another name, or "
                               "say that it may be replaced (--force)");
  }
  auto made = NewFile::make(directory.value());
  if (!made.ok()) return made.status();
  auto copied =
      source.value().copy_into(made.value().file(), std::numeric_limits<std::uint64_t>::max());
  if (!copied.ok()) {
    const Status& failed = copied.status();
    const char* const advice =
        is_want_of_space(failed.error_number()) ? "; free some space, and copy again" : "";
    return failed.with_text(target + ": " + failed.text() + advice);
  }
  // Whoever may read the file may read its copy, and nobody else.
  PAWL_TRY(adopt_permissions(source.value().descriptor(), made.value().descriptor(), 0777, target));
  // Once more: the copy took its time.
  PAWL_TRY(check_target(source.value(), target));
  PAWL_TRY(made.value().publish(target, may_replace));
  return copied;
}

}  // namespace pawl::snapshot
