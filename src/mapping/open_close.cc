// From a file to a mapping, after whatever crash; and back to just a file.

#include <cerrno>
#include <new>

#include "journal/replay.h"
#include "mapping/fork_guard.h"
#include "mapping/implementation.h"
#include "medium/law.h"

namespace pawl {
namespace {

Result<std::unique_ptr<Tracker>> make_tracker(TrackerChoice choice) {
  switch (choice) {
    case TrackerChoice::scan:
      return make_scan_tracker();
    case TrackerChoice::fault:
      return make_fault_tracker();
    case TrackerChoice::store:
      return make_store_tracker();
    case TrackerChoice::automatic:
      break;
  }
  if (auto scan = make_scan_tracker(); scan.ok()) return scan;
  return make_fault_tracker();
}

constexpr int kAcquireAttemptsMax = 100;

struct OpenJournal {
  std::unique_ptr<MediumFile> file;
  bool is_new = false;
  journal::Replayed replayed;
};

// The existing side file, locked; ENOENT when there is none and the file carries no mark; ENODATA
// when it carries one.  A writer that begins or ends meanwhile is not taken for a crash: its mark
// comes after its journal and goes before it.
Result<JournalFile> existing_journal(Medium& medium) {
  std::optional<Mark> seen;
  for (int attempt = 0; attempt < kAcquireAttemptsMax; ++attempt) {
    auto acquired = medium.acquire_journal(false);
    if (acquired.ok() || acquired.status().error_number() != ENOENT) return acquired;
    auto mark = medium.mark();
    if (!mark.ok()) return mark.status();
    if (!mark.value().has_value()) return acquired;
    if (seen.has_value() && seen->journal_id == mark.value()->journal_id) {
      return journal::missing_journal(medium, *mark.value());
    }
    seen = mark.value();
  }
  return Status::failure(EBUSY, "writers of " + medium.path() + " come and go; try again");
}

// The side file, locked and replayed; new when there was none.
Result<OpenJournal> recovered_journal(Medium& medium) {
  auto acquired = existing_journal(medium);
  if (!acquired.ok() && acquired.status().error_number() == ENOENT)
    acquired = medium.acquire_journal(true);
  if (!acquired.ok()) return acquired.status();
  OpenJournal journal;
  journal.file = std::move(acquired.value().file);
  journal.is_new = acquired.value().is_new;
  if (journal.is_new) {
    journal.replayed.journal_id = journal::random_journal_id();
    return journal;
  }
  auto replayed = journal::replay(medium, *journal.file);
  if (!replayed.ok()) return replayed.status();
  journal.replayed = replayed.value();
  return journal;
}

}  // namespace

Mapping::Implementation::Implementation(std::unique_ptr<Medium> medium, const Options& options,
                                        std::shared_ptr<CommitLog> log,
                                        std::unique_ptr<Tracker> tracker, std::uint64_t size_bytes,
                                        std::uint64_t records_replayed)
    : medium_(std::move(medium)),
      options_(options),
      log_(std::move(log)),
      mutex_(log_->mutex()),
      journal_(&log_->journal()),
      checkpointer_(log_->checkpointer()),
      batches_(log_->batches()),
      base_in_place_(medium_->base().in_place()),
      image_(medium_->base(), size_bytes, journal_->last_sequence()),
      tracker_(std::move(tracker)),
      view_(*medium_, *tracker_),
      size_(size_bytes),
      lowest_size_(size_bytes),
      records_replayed_(records_replayed),
      lines_record_(journal_->block_bytes()) {
  checkpointer_.add(medium_->base(), image_);
  journal_->keep_what_is_held([this] { return medium_->first_held_record(); });
  guard_fork(this, {.before = [this] { lock_for_fork(); },
                    .in_parent = [this] { unlock_after_fork(); },
                    .in_child =
                        [this] {
                          unlock_after_fork();
                          abandoned_.store(true);
                          medium_->abandon();
                        }});
}

Mapping::Implementation::~Implementation() {
  forget_fork_guard(this);
  checkpointer_.remove(image_);
}

// The child reads what is committed, and cannot bring a record that waits into the base.
void Mapping::Implementation::lock_for_fork() {
  if (base_in_place_ != nullptr) {
    mutex_.lock();
    [[maybe_unused]] const Status noted = settle_in_place();
  }
  image_.lock_for_fork();
}

void Mapping::Implementation::unlock_after_fork() {
  image_.unlock_after_fork();
  if (base_in_place_ != nullptr) mutex_.unlock();
}

Result<std::unique_ptr<Mapping>> Mapping::Implementation::open(std::unique_ptr<Medium> medium,
                                                               const Options& options) {
  PAWL_TRY(options.validate());
  auto tracker = make_tracker(options.tracker);
  if (!tracker.ok()) return tracker.status();
  auto opened = recovered_journal(*medium);
  if (!opened.ok()) return opened.status();
  const journal::Replayed& replayed = opened.value().replayed;

  bool published = !opened.value().is_new;
  const auto give_up = [&](const Status& status) -> Status {
    // A journal that never had a commit need not stay; but once it has its name the file may carry
    // its mark, and as long as that is so it must.
    if (!opened.value().is_new) return status;
    if (published && !(medium->clear_mark().ok() && medium->base().flush().ok())) return status;
    [[maybe_unused]] const Status ignored = medium->remove_journal();
    return status;
  };
  // What the file holds now is the first committed image: it must not vanish behind later records.
  if (const Status flushed = medium->base().flush(); !flushed.ok()) return give_up(flushed);
  const std::uint64_t journal_bytes = round_up(options.journal_size_bytes, journal::kBlockBytes);
  auto journal = journal::Journal::format(
      std::move(opened.value().file), replayed.journal_id, medium->identity(), replayed.generation,
      replayed.next_sequence, journal_bytes, medium->block_bytes());
  if (!journal.ok()) {
    return give_up(Status::failure(journal.status().error_number(),
                                   "cannot make a journal of " + std::to_string(journal_bytes) +
                                       " bytes: " + journal.status().text() +
                                       ". A smaller one will do (PAWL_JOURNAL_SIZE)"));
  }
  if (const Status named = medium->publish_journal(); !named.ok()) return give_up(named);
  published = true;
  // Before the first commit: from then on the file alone is not the whole truth.
  if (const Status marked = medium->set_mark({replayed.journal_id, medium->journal_path()});
      !marked.ok())
    return give_up(marked);
  if (const Status flushed = medium->base().flush(); !flushed.ok()) return give_up(flushed);
  auto size = medium->base().size();
  if (!size.ok()) return give_up(size.status());

  auto log = std::make_shared<CommitLog>(std::move(journal.value()), options.apply_threshold_pages);
  auto implementation =
      std::make_unique<Implementation>(std::move(medium), options, std::move(log),
                                       std::move(tracker.value()), size.value(), replayed.records);
  PAWL_TRY(implementation->image_.learn_space());
  return std::unique_ptr<Mapping>(new Mapping(std::move(implementation)));
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
  return end_journal();
}

// What is committed goes into the base, and then the journal goes.
Status Mapping::Implementation::end_journal() {
  PAWL_TRY(checkpoint_all());
  if (is_broken(Law::mark_before_journal)) {
    PAWL_TRY(medium_->remove_journal());
    PAWL_TRY(medium_->clear_mark());
    return medium_->base().flush();
  }
  // In this order: a file without a mark has nothing that only the journal knows.
  PAWL_TRY(medium_->clear_mark());
  PAWL_TRY(medium_->base().flush());
  return medium_->remove_journal();
}

Status Mapping::Implementation::discard_locked() {
  [[maybe_unused]] const Status ended = end_locked();
  [[maybe_unused]] const Status queued = batches_.wait();
  PAWL_TRY(medium_->clear_mark());
  return medium_->remove_journal();
}

Result<std::uint64_t> recover(Medium& medium, bool accept_loss) {
  auto acquired = existing_journal(medium);
  if (!acquired.ok()) {
    if (acquired.status().error_number() == ENOENT) return std::uint64_t{0};
    if (acquired.status().error_number() != ENODATA || !accept_loss) return acquired.status();
    // Under the lock of a journal of our own, so that no writer begins meanwhile.
    auto held = medium.acquire_journal(true);
    if (!held.ok()) return held.status();
    PAWL_TRY(medium.clear_mark());
    PAWL_TRY(medium.base().flush());
    PAWL_TRY(medium.remove_journal());
    return std::uint64_t{0};
  }
  MediumFile& file = *acquired.value().file;
  auto replayed = journal::replay(medium, file, accept_loss);
  if (!replayed.ok()) return replayed.status();
  auto present = file.size();
  if (!present.ok()) return present.status();
  // The journal is emptied, durably, before the mark goes: a crash in between finds nothing to do.
  const std::uint64_t size_bytes =
      std::max(round_down(present.value(), journal::kBlockBytes), kJournalSizeMin);
  auto emptied =
      journal::Journal::format(std::move(acquired.value().file), replayed.value().journal_id,
                               medium.identity(), replayed.value().generation,
                               replayed.value().next_sequence, size_bytes, medium.block_bytes());
  if (!emptied.ok()) return emptied.status();
  PAWL_TRY(medium.clear_mark());
  PAWL_TRY(medium.base().flush());
  PAWL_TRY(medium.remove_journal());
  return replayed.value().records;
}

}  // namespace pawl
