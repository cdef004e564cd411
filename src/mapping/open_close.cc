// From a file to a mapping, after whatever crash; and back to just a file.

#include <cerrno>
#include <new>

#include "journal/membership.h"
#include "mapping/group.h"
#include "mapping/implementation.h"
#include "mapping/recovery.h"
#include "medium/fork_guard.h"
#include "medium/inherited_memory.h"
#include "medium/law.h"

namespace pawl {
namespace {

Result<std::unique_ptr<Tracker>> make_tracker(const Options& options) {
  const bool others_store = options.other_processes == OtherProcesses::store;
  switch (options.tracker) {
    case TrackerChoice::scan:
      return make_scan_tracker(others_store);
    case TrackerChoice::fault:
      return make_fault_tracker();
    case TrackerChoice::store:
      return make_store_tracker();
    case TrackerChoice::automatic:
      break;
  }
  if (auto scan = make_scan_tracker(others_store); scan.ok()) return scan;
  return make_fault_tracker();
}

// Of a file as recovery left it: a commit tells its size, and no reader believes a larger one.
Result<std::uint64_t> size_within(Medium& medium, std::uint64_t size_bytes_max) {
  auto size = medium.base().size();
  if (!size.ok() || size.value() <= size_bytes_max) return size;
  return Status::failure(EFBIG, PAWL_ERROR_TOO_LARGE,
                         medium.path() + " has " + std::to_string(size.value()) +
                             " bytes, and the journal can tell of sizes up to " +
                             std::to_string(size_bytes_max) + " only. Make the file smaller");
}

}  // namespace

Mapping::Implementation::Implementation(std::unique_ptr<Medium> medium, const Options& options,
                                        std::shared_ptr<CommitLog> log, std::uint64_t number,
                                        std::unique_ptr<Tracker> tracker, std::uint64_t size_bytes,
                                        std::uint64_t records_replayed)
    : medium_(std::move(medium)),
      options_(options),
      log_(std::move(log)),
      number_(number),
      mutex_(log_->mutex()),
      journal_(&log_->journal()),
      checkpointer_(log_->checkpointer()),
      batches_(log_->batches()),
      base_in_place_(medium_->base().in_place()),
      image_(medium_->base(), size_bytes, journal_->last_sequence()),
      tracker_(std::move(tracker)),
      view_(*medium_, tracker_),
      size_(size_bytes),
      lowest_size_(size_bytes),
      records_replayed_(records_replayed),
      lines_record_(journal_->block_bytes()) {
  image_.call_after_cut([this] { tracker_->clear_markers_behind_cut(); });
  if (number_ == 0) journal_->keep_what_is_held([this] { return medium_->first_held_record(); });
  checkpointer_.add(medium_->base(), image_);
  try {
    guard_fork(this, {.before = [this] { lock_for_fork(); },
                      .in_parent = [this] { unlock_after_fork(); },
                      .in_child =
                          [this] {
                            unlock_after_fork();
                            abandoned_.store(true);
                            inherited_memory::come();
                          }});
  } catch (...) {
    // The log may be a group's, and go on.
    checkpointer_.remove(image_, Checkpointer::Left::after_all);
    throw;
  }
}

Mapping::Implementation::~Implementation() {
  forget_fork_guard(this);
  if (group_ == nullptr) {
    // A file that could not join its group has no record there; the group's lock is held.
    checkpointer_.remove(
        image_, number_ == 0 ? Checkpointer::Left::as_in_a_crash : Checkpointer::Left::after_all);
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!has_left_) {
    // The others must not go on as if this file had all that was committed.
    note_final(Status::failure(EOWNERDEAD, PAWL_ERROR_MAPPING_BROKEN,
                               medium_->path() + " was not closed"));
  }
  group_->forget(*this);
  if (keeps_number_) group_->erase(number_);
  checkpointer_.remove(
      image_, has_left_ ? Checkpointer::Left::after_all : Checkpointer::Left::as_in_a_crash);
}

// The child reads what is committed, and cannot bring a record that waits into the base.  Neither
// may a child that forks in turn: it holds nothing, for a lock may be held there for ever.
void Mapping::Implementation::lock_for_fork() {
  is_locked_for_fork_ = !is_in_child();
  if (!is_locked_for_fork_) return;
  if (base_in_place_ != nullptr) {
    mutex_.lock();
    [[maybe_unused]] const Status noted = settle_in_place();
  }
  image_.lock_for_fork();
}

void Mapping::Implementation::unlock_after_fork() {
  if (!is_locked_for_fork_) return;
  image_.unlock_after_fork();
  if (base_in_place_ != nullptr) mutex_.unlock();
}

Result<std::unique_ptr<Mapping>> Mapping::Implementation::open(std::unique_ptr<Medium> medium,
                                                               const Options& options) {
  PAWL_TRY(options.validate());
  auto tracker = make_tracker(options);
  if (!tracker.ok()) return tracker.status();
  auto opened = recovered_journal(*medium);
  if (!opened.ok()) return opened.status();
  const journal::Replayed& replayed = opened.value().replayed;

  // What the file holds now is the first committed image: it must not vanish behind later records.
  // A new journal has none before the mark, and the flush behind that takes this as well.
  if (!opened.value().is_new) PAWL_TRY(medium->base().flush());
  // Under a new id: a journal of an earlier life that comes back is not taken for this one.
  const auto drawn = journal::random_journal_id();
  if (!drawn.ok()) return drawn.status();
  const JournalId& id = drawn.value();
  std::optional<JournalId> recovered;
  if (!opened.value().is_new) recovered = replayed.journal_id;
  PAWL_TRY(medium->claim(id, recovered));
  // The mark with the id of a journal must not outlive that journal.
  if (recovered.has_value()) PAWL_TRY(medium->base().flush());
  const auto give_up = [&](const Status& status) -> Status {
    // A journal that never had a commit need not stay; but as long as the file carries its mark it
    // must.
    if (!opened.value().is_new) return status;
    if (!(medium->clear_mark().ok() && medium->base().flush().ok())) return status;
    [[maybe_unused]] const Status ignored = medium->remove_journal();
    return status;
  };
  auto size = size_within(*medium, journal::kFileSizeMax);
  if (!size.ok()) return give_up(size.status());
  const std::uint64_t journal_bytes = options.first_journal_bytes(size.value());
  auto journal = journal::Journal::format(std::move(opened.value().file), id, medium->identity(),
                                          replayed.generation, replayed.next_sequence,
                                          journal_bytes, medium->block_bytes());
  if (!journal.ok()) {
    return give_up(
        no_journal("cannot make a journal of " + std::to_string(journal_bytes) + " bytes",
                   journal_bytes, journal.status()));
  }
  journal.value()->may_grow_to(options.journal_bytes_max());
  auto budget = budget_of(*medium, *journal.value(), options);
  if (!budget.ok()) return give_up(budget.status());
  if (const Status named = medium->publish_journal(); !named.ok()) return give_up(named);
  // Before the first commit: from then on the file alone is not the whole truth.
  if (const Status marked = medium->set_mark({id, medium->journal_path()}); !marked.ok())
    return give_up(marked);
  if (const Status flushed = medium->base().flush(); !flushed.ok()) return give_up(flushed);

  auto log = std::make_shared<CommitLog>(std::move(journal.value()), options.apply_threshold_pages,
                                         std::move(budget.value()));
  auto implementation =
      std::make_unique<Implementation>(std::move(medium), options, std::move(log), 0,
                                       std::move(tracker.value()), size.value(), replayed.records);
  PAWL_TRY(implementation->image_.learn_space());
  return std::unique_ptr<Mapping>(new Mapping(std::move(implementation)));
}

struct Mapping::Implementation::Joining {
  std::unique_ptr<Medium> medium;  // until there is a mapping
  std::unique_ptr<Tracker> tracker;
  bool holds_side_file = false;
  std::uint64_t number = 0;  // 0: it is not listed
  std::unique_ptr<Mapping> mapping;
  bool may_be_marked = false;
  bool may_have_entered = false;
  Medium* file() const {
    return mapping != nullptr ? mapping->implementation_->medium_.get() : medium.get();
  }
};

Result<std::unique_ptr<Mapping>> Mapping::Implementation::open_in(
    const std::shared_ptr<Group>& group, std::unique_ptr<Medium> medium) {
  // In a forked child the lock may be held for ever.
  if (group->is_in_child()) return group->usable();
  auto tracker = make_tracker(group->options_);
  if (!tracker.ok()) return tracker.status();
  if (medium->base().in_place() != nullptr) {
    return Status::failure(EOPNOTSUPP, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM,
                           medium->path() +
                               " is in persistent memory, where files do not form "
                               "groups; map it as a file on a disk (PAWL_MEDIUM=block)");
  }
  if (!medium->can_mark()) {
    return Status::failure(EOPNOTSUPP, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM,
                           medium->path() +
                               " is on a file system without user attributes, which "
                               "the files of a group need");
  }
  const std::lock_guard lock(group->log_.mutex());
  PAWL_TRY(group->usable());
  Joining joining;
  joining.medium = std::move(medium);
  joining.tracker = std::move(tracker.value());
  Status joined;
  try {
    joined = join_group(group, joining);
  } catch (const std::bad_alloc&) {
    joined = Status::no_memory("no memory to take the file into its group");
  }
  if (joined.ok()) return std::move(joining.mapping);
  leave_again(*group, joining);
  return joined;
}

Status Mapping::Implementation::join_group(const std::shared_ptr<Group>& group, Joining& joining) {
  Medium& medium = *joining.medium;
  auto side = fresh_journal(medium);
  if (!side.ok()) return side.status();
  joining.holds_side_file = true;
  PAWL_TRY(journal::check_owner_of_group(*group->medium_, medium));
  PAWL_TRY(journal::check_owner_of_side_file(side.value(), medium));
  // What the file holds now is the first committed image: it must not vanish behind later records.
  PAWL_TRY(medium.base().flush());
  // Recovery may have changed it.
  auto size = size_within(medium, journal::kGroupFileSizeMax);
  if (!size.ok()) return size.status();
  PAWL_TRY(group->limit_journal(medium));
  // The list first: what carries the mark must be found by it.
  auto listed = group->list(medium);
  if (!listed.ok()) return listed.status();
  joining.number = listed.value();
  const JournalId& id = group->log_.journal().id();
  PAWL_TRY(medium.claim(id));
  joining.may_be_marked = true;
  auto member_side = journal::MemberSide::make(
      std::move(side.value().file), id, medium.identity(),
      {joining.number, group->medium_->identity(), name_as_seen_from(medium, *group->medium_)});
  if (!member_side.ok()) return member_side.status();
  PAWL_TRY(medium.publish_journal());

  // All that takes memory comes before the mark: what carries that is of the group.
  auto implementation = std::make_unique<Implementation>(
      std::move(joining.medium), group->options_, std::shared_ptr<CommitLog>(group, &group->log_),
      joining.number, std::move(joining.tracker), size.value(), 0);
  // Without it each page is asked for anew.
  [[maybe_unused]] const Status learned = implementation->image_.learn_space();
  implementation->member_side_.emplace(std::move(member_side.value()));
  joining.mapping.reset(new Mapping(std::move(implementation)));
  PAWL_TRY(medium.set_mark({id, medium.journal_path()}));
  PAWL_TRY(medium.base().flush());

  Implementation& own = *joining.mapping->implementation_;
  joining.may_have_entered = true;
  PAWL_TRY(own.member_side_->enter());
  group->enter(joining.number, own);
  own.group_ = group.get();
  return {};
}

// As far as a join came that failed.  What cannot be undone is left as after a crash, and the
// group's journal with it: without that a file that carries the mark is not recovered.
void Mapping::Implementation::leave_again(Group& group, Joining& joining) noexcept {
  Medium* const file = joining.file();
  // Without a medium the memory ended when the mapping was made: the mark is that of an opening,
  // which binds nobody.
  bool is_unmarked = !joining.may_be_marked || file == nullptr;
  try {
    const bool is_outside =
        !joining.may_have_entered || joining.mapping->implementation_->member_side_->leave().ok();
    is_unmarked =
        is_unmarked || (is_outside && file->clear_mark().ok() && file->base().flush().ok());
    if (!is_unmarked) {
      return group.log_.failures().note_final(
          Status::failure(EOWNERDEAD, PAWL_ERROR_MAPPING_BROKEN,
                          file->path() + " could not join, and may carry the group's mark"));
    }
    [[maybe_unused]] Status ignored;
    if (file != nullptr && joining.holds_side_file) ignored = file->remove_journal();
    // Listed and without a mark it does no harm.
    if (joining.number != 0) ignored = group.strike(joining.number);
  } catch (const std::bad_alloc&) {
    if (!is_unmarked) {
      group.log_.failures().note_final(Status::no_memory("no memory to let go of a file"));
    } else if (joining.number != 0) {
      group.erase(joining.number);
    }
  }
}

// The window goes whatever else happens; what usable() says is said of the time before.
Status Mapping::Implementation::end_locked() {
  const Status before = usable();
  view_.unmap();
  closed_.store(true);
  return before;
}

Status Mapping::Implementation::close_locked() {
  PAWL_TRY(end_locked());
  PAWL_TRY(checkpoint_all());
  return end_empty_journal();
}

// What is committed is in the base.
Status Mapping::Implementation::end_empty_journal() {
  if (group_ != nullptr) {
    PAWL_TRY(leave_locked());
    PAWL_TRY(group_->strike(number_));
    return medium_->remove_journal();
  }
  if (is_broken(Law::mark_before_journal)) {
    PAWL_TRY(medium_->remove_journal());
    PAWL_TRY(medium_->clear_mark());
    return medium_->base().flush();
  }
  return let_go_of(*medium_, *journal_);
}

// With all records applied, flushed and dropped: once it is struck its number may be another
// file's.
Status Mapping::Implementation::leave_locked() {
  PAWL_TRY(member_side_->leave());
  PAWL_TRY(medium_->clear_mark());
  PAWL_TRY(medium_->base().flush());
  has_left_ = true;
  return {};
}

Status Mapping::Implementation::discard_locked() {
  if (group_ != nullptr) return close_locked();
  [[maybe_unused]] const Status ended = end_locked();
  [[maybe_unused]] const Status queued = batches_.wait();
  PAWL_TRY(medium_->clear_mark());
  return medium_->remove_journal();
}

}  // namespace pawl
