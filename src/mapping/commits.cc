// Commit: the way of stores from the working view of a file, or of all files of a group, into one
// durable record.

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <new>

#include "journal/reader.h"
#include "mapping/group.h"
#include "mapping/implementation.h"
#include "mapping/place_in_hand.h"
#include "mapping/power.h"
#include "medium/idle_poll.h"
#include "medium/law.h"
#include "medium/own_threads.h"
#include "medium/quiet_thread.h"

namespace pawl {
namespace {

std::uint64_t wall_clock_ns() {
  timespec now{};
  // To the kernel's tick: for people, and read for less than a precise one.
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool may_fit_later(const Status& status) {
  const int error_number = status.error_number();
  return is_want_of_space(error_number) || error_number == EFBIG;
}

// Nothing was written yet: with space again the same call may succeed.
Status why_not_committed(const Status& failure) {
  if (failure.code() != PAWL_ERROR_NO_SPACE) return failure;
  return Status::failure(failure.error_number(), PAWL_ERROR_NO_SPACE_FOR_COMMIT, failure.text());
}

constexpr const char* kNoMemory = "no memory for the commit; free some and call again";

}  // namespace

journal::RecordHeader Mapping::Implementation::header_for(const journal::Place& place) const {
  journal::RecordHeader header;
  header.epoch = journal_->epoch();
  header.sequence = place.sequence;
  if (number_ == 0) {
    header.file_size = size_;
    header.truncate_to = truncate_to();
  }
  header.time_ns = wall_clock_ns();
  header.header_generation = journal_->header_generation();
  header.durable_sequence = log_->durable_sequence();
  return header;
}

Status Mapping::Implementation::apply_all() {
  PAWL_TRY(batches_.wait());
  PAWL_TRY(settle_in_place());
  return checkpointer_.apply_now();
}

Status Mapping::Implementation::checkpoint_all() {
  PAWL_TRY(batches_.wait());
  PAWL_TRY(settle_in_place());
  return checkpointer_.checkpoint_now(journal::Drop::held_as_well);
}

// Space in the ring; when there is none, after a checkpoint.  While a snapshot reads the records
// the journal grows instead; where it cannot, the snapshot gives way.
Result<journal::Place> Mapping::Implementation::place_for(std::uint64_t record_bytes) {
  if (auto place = journal_->reserve(record_bytes)) return *place;
  if (journal_->is_held() && journal_->can_grow()) {
    auto place = place_behind_the_rest(record_bytes);
    if (place.ok() || !may_fit_later(place.status())) return place;
  }
  stalls_ += 1;
  PAWL_TRY(checkpoint_all());
  if (auto place = journal_->reserve(record_bytes)) return *place;
  return place_behind_the_rest(record_bytes);
}

Result<journal::Place> Mapping::Implementation::place_behind_the_rest(
    std::uint64_t record_bytes) const {
  auto place = journal_->reserve_oversize();
  if (!place.ok()) return place;
  PlaceInHand in_hand(*journal_, place.value());
  PAWL_TRY(journal_->extend(place.value(), record_bytes));
  journal_->settle(place.value());
  in_hand.keep();
  return place;
}

// The sizes of a group's files, and what changed in the files.
Status Mapping::Implementation::collect(Files files, journal::RecordBuilder& record, Keep keep,
                                        bool& is_empty) {
  is_empty = true;
  if (files.front()->number_ != 0) {
    std::vector<journal::FileSize> sizes;
    for (const Implementation* file : files)
      sizes.push_back({file->number_, file->size_, file->truncate_to()});
    PAWL_TRY(record.add(0, std::as_bytes(std::span(sizes))));
  }
  for (Implementation* file : files) {
    const std::uint64_t bytes_before = record.content_bytes();
    PAWL_TRY(file->collect_changes(record, keep));
    const std::uint64_t bytes = record.content_bytes() - bytes_before;
    file->bytes_changed_in_hand_ = bytes;
    if (bytes > 0 || file->size_is_pending()) is_empty = false;
  }
  return is_empty ? Status{} : take_space_of_all(files, record.record_bytes());
}

// The files of a group share a disk and a journal, and are recovered together: what waits in those
// that the commit leaves as they are counts as well.
Status Mapping::Implementation::take_space_of_all(Files files, std::uint64_t record_bytes) {
  Files all = files;
  std::vector<Implementation*> of_group;
  if (const Group* group = files.front()->group_; group != nullptr) {
    of_group = group->mappings();
    all = of_group;
  }
  std::uint64_t pages = 0;
  for (Implementation* file : all) pages += file->image_.waiting_pages();
  for (Implementation* file : files) pages += file->changed_runs_.page_count();
  if (!is_broken(Law::space_where_shared)) {
    for (Implementation* file : files)
      PAWL_TRY(file->medium_->base().check_overwrite(pages * kPageBytes + record_bytes));
  }
  for (Implementation* file : all) {
    const bool is_in_commit = std::find(files.begin(), files.end(), file) != files.end();
    PAWL_TRY(is_in_commit ? file->take_space() : file->image_.check_space_where_shared({}, {}));
  }
  return {};
}

bool Mapping::Implementation::patch_images(Files files, std::span<const std::byte> record,
                                           std::uint64_t sequence) {
  // One after another: with part of the record in an image it must not be dropped.
  return std::all_of(files.begin(), files.end(),
                     [&](Implementation* file) { return file->patch_image(record, sequence); });
}

// The record is on its way, and is what the files are from now on.
void Mapping::Implementation::count(Files files, const journal::Place& place) {
  files.front()->bytes_logged_ += place.bytes;
  for (Implementation* file : files) {
    file->commits_ += 1;
    file->bytes_changed_ += file->bytes_changed_in_hand_;
    file->changed_pages_ += file->changed_pages_in_hand_;
    file->lowest_size_ = file->size_;
  }
}

Status Mapping::Implementation::commit_staged(Files files, Durability durability) {
  Implementation& first = *files.front();
  journal::RecordBuilder record(first.journal_->block_bytes(), {}, std::move(first.record_memory_));
  bool is_empty = false;
  PAWL_TRY(collect(files, record, Keep::pages, is_empty));
  if (is_empty) return durability == Durability::now ? first.batches_.wait() : Status{};
  if (first.base_in_place_ != nullptr) {
    const Status committed = first.commit_in_place(record);
    first.record_memory_ = record.take_buffer();
    return committed;
  }
  return first.commit_record(files, record, durability);
}

// Nobody knows whether the record is durable, or will be.  So its place and its number are taken,
// and no commit follows it: the next open finds it, or the one before it.
Status Mapping::Implementation::could_not_write(const Status& failure, PlaceInHand& in_hand) {
  if (is_broken(Law::failed_write_is_final) && failure.error_number() != EIO) return failure;
  in_hand.keep();
  note_final(failure);
  return Status::failure(EIO, failure.code(), usable().text());
}

// What is only in a file without a name is gone after a crash; and a file of a group whose own side
// file is gone is not given what the group's journal has.
Status Mapping::Implementation::refuse_to_commit(const Status& nameless) const {
  return nameless.with_text(
      nameless.text() +
      ": after a crash nobody would find what is committed, so nothing is. Unmap " +
      medium_->path() + ", which brings every commit so far into it, and map it anew");
}

Status Mapping::Implementation::commit_record(Files files, journal::RecordBuilder& record,
                                              Durability durability) {
  auto place = place_for(record.record_bytes());
  if (!place.ok()) return place.status();
  PlaceInHand in_hand(*journal_, place.value());
  PAWL_TRY(journal_->take_own_blocks(place.value()));
  PAWL_TRY(record.finish(header_for(place.value())));
  PAWL_ASSERT(record.block().size() == place.value().bytes);
  const std::uint64_t sequence = place.value().sequence;

  // Before anything that only a later flush completes.
  const bool is_later = durability == Durability::queued || log_->writes_behind();
  const bool has_thread = is_later && batches_.has_thread();
  if (has_thread && log_->writes_behind() && !the_power_is_failing.load()) {
    const auto has_room = batches_.wait_for_room(place.value().bytes);
    if (!has_room.ok()) return has_room.status();
    if (has_room.value()) return commit_behind(files, place.value(), in_hand, record);
  }
  // Batches that are still queued must become durable first; then the record joins them and shares
  // their flush.
  if ((durability == Durability::queued && has_thread) || !batches_.idle()) {
    in_hand.keep();
    // With part of it in the image the record must not become durable, and then be dropped.
    if (!patch_images(files, record.block(), sequence)) return usable();
    count(files, place.value());
    Status queued;
    try {
      queued = batches_.enqueue(place.value(), std::move(record));
    } catch (const std::bad_alloc&) {
      queued = Status::no_memory("no memory to queue a commit");
    }
    if (!queued.ok()) {
      note_final(queued);  // the image is ahead of the journal already
      return usable();
    }
    return durability == Durability::now ? batches_.wait() : Status{};
  }
  Status written;
  {
    const IdlePoll::Wait wait(options_.idle_poll_us);
    written = journal_->write_durably(place.value(), record.block());
  }
  if (!written.ok()) return could_not_write(written, in_hand);
  in_hand.keep();
  log_->set_durable(sequence);
  // With part of it in the image the record must not count as applied, and be dropped.
  if (patch_images(files, record.block(), sequence)) checkpointer_.durable(sequence);
  count(files, place.value());
  record_memory_ = record.take_buffer();
  return {};
}

// The record outlives the process when it is written, and is flushed behind the commit.
Status Mapping::Implementation::commit_behind(Files files, const journal::Place& place,
                                              PlaceInHand& in_hand,
                                              journal::RecordBuilder& record) {
  const Status written = journal_->write(place, 0, record.block());
  if (!written.ok()) return could_not_write(written, in_hand);
  in_hand.keep();
  if (!patch_images(files, record.block(), place.sequence)) return usable();
  count(files, place);
  Status queued;
  try {
    queued = batches_.enqueue_written(place);
  } catch (const std::bad_alloc&) {
    queued = Status::no_memory("no memory to queue a commit");
  }
  if (!queued.ok()) {
    note_final(queued);  // the image is ahead of the journal already
    return usable();
  }
  record_memory_ = record.take_buffer();
  return {};
}

// From here on the commit is durable; what fails now ends the mapping, and the next open completes
// it.  Unless the journal does not hold it, whatever its write and its flush said.
Status Mapping::Implementation::apply_direct(Files files, const journal::Place& place,
                                             bool& is_held) {
  auto reader = journal::Reader::open(journal_->file());
  if (!reader.ok()) return reader.status();
  reader.value().begin_at(place.offset, place.sequence);
  auto record = reader.value().next();
  if (!record.ok()) return record.status();
  if (!record.value().has_value() || record.value()->header.sequence != place.sequence) {
    is_held = false;
    return Status::failure(
        EIO, PAWL_ERROR_IO,
        "the journal " + medium_->journal_path() + " does not hold what was just written to it");
  }
  const BaseCut cut(files);
  for (Implementation* file : files) {
    const journal::FileSize* const sizes = record.value()->size_of(file->number_);
    PAWL_ASSERT(sizes != nullptr);
    PAWL_TRY(file->image_.begin_direct(sizes->truncate_to, sizes->size_bytes, place.sequence));
  }
  PAWL_TRY(reader.value().visit(
      *record.value(), [&](std::uint64_t offset, std::span<const std::byte> bytes) {
        if (number_ == 0) return image_.direct(offset, bytes);
        const auto named = std::find_if(files.begin(), files.end(), [&](const auto* file) {
          return file->number_ == journal::file_number(offset);
        });
        PAWL_ASSERT(named != files.end());
        return (*named)->image_.direct(journal::offset_in_file(offset), bytes);
      }));
  for (Implementation* file : files) PAWL_TRY(file->image_.end_direct(place.sequence));
  // The group's other files have nothing in it.
  checkpointer_.durable(place.sequence);
  return {};
}

Status Mapping::Implementation::commit_direct(Files files) {
  Implementation& first = *files.front();
  if (first.journal_->is_held() && first.journal_->can_grow()) {
    PAWL_TRY(first.apply_all());
    const Status committed = first.commit_behind_the_rest(files);
    // Else the snapshot gives way.
    if (!may_fit_later(committed)) return committed;
  }
  PAWL_TRY(first.checkpoint_all());
  return first.commit_behind_the_rest(files);
}

// With everything applied; and nothing else in the journal, unless a snapshot reads it.
Status Mapping::Implementation::commit_behind_the_rest(Files files) {
  journal::Place place;
  journal::RecordBuilder record(
      journal_->block_bytes(),
      [&](std::uint64_t offset, std::span<const std::byte> bytes) -> Status {
        PAWL_TRY(journal_->extend(place, offset + bytes.size()));
        return journal_->write(place, offset, bytes);
      });
  auto reserved = journal_->reserve_oversize();
  if (!reserved.ok()) return reserved.status();
  place = reserved.value();
  bool is_empty = false;
  const auto build = [&]() -> Status {
    PAWL_TRY(collect(files, record, Keep::nothing, is_empty));
    if (is_empty) return {};
    PAWL_TRY(record.finish(header_for(place)));
    PAWL_TRY(journal_->extend(place, record.block().size()));
    return journal_->write(place, 0, record.block());
  };
  Status built;
  try {
    built = build();
  } catch (const std::bad_alloc&) {
    built = Status::no_memory(kNoMemory);
  }
  if (!built.ok() || is_empty) {
    journal_->cancel(place);
    if (const Status cut = journal_->give_growth_back(); !cut.ok()) note_final(cut);
    return built;
  }
  journal_->settle(place);
  if (const Status flushed = journal_->flush(); !flushed.ok()) {
    note_final(flushed);
    return usable();
  }
  log_->set_durable(place.sequence);
  count(files, place);
  Status applied;
  bool is_held = true;
  try {
    applied = checkpointer_.apply_directly([&] { return apply_direct(files, place, is_held); });
  } catch (const std::bad_alloc&) {
    applied = Status::no_memory("no memory for the committed image");
  }
  if (!applied.ok()) note_final(applied);
  return is_held ? Status{} : usable();
}

// Whoever may not have the file may not have the bytes of it in its side file, nor in the journal
// of its group.
// And before pages are taken from the tracker, which has descriptors, too; and what is read of the
// base is compared with.
Status Mapping::Implementation::check_before_commit() {
  const Status checked = medium_->check_before_commit();
  if (checked.error_number() == ESTALE) return refuse_to_commit(checked);
  PAWL_TRY(checked);
  const std::uint64_t seen = medium_->rights_seen();
  if (group_ == nullptr || seen == rights_in_group_) return {};
  PAWL_TRY(group_->limit_journal(*medium_));
  rights_in_group_ = seen;
  return {};
}

// It is the side file of none of its files, so that their own looks do not tell of it.
Status Mapping::Implementation::check_journal_of_group() const {
  if (group_ == nullptr) return {};
  const Status named = journal_->file().check_named();
  return named.ok() ? named : refuse_to_commit(named);
}

// What the tracker has of the pages that are to be committed.
Status Mapping::Implementation::take_in_hand(std::uint64_t first_page, std::uint64_t end_page) {
  taken_.clear();
  in_hand_ = &taken_;
  return take_pages(first_page, end_page, taken_);
}

// Pages that no store marked, and those that were written outside of the window, go with them.
Status Mapping::Implementation::join_outside(std::uint64_t first_page, std::uint64_t end_page) {
  if (options_.verify && tracker_->knows_lines())
    PAWL_TRY(find_unmarked(first_page, end_page, taken_));
  if (outside_.empty()) return {};
  with_outside_ = taken_;
  for (const auto& [page, bytes] : outside_) with_outside_.push_back({page, kAllLines});
  join(with_outside_);
  in_hand_ = &with_outside_;
  return {};
}

Status Mapping::Implementation::commit_in_hand(Files files, Durability durability) {
  Implementation& first = *files.front();
  std::uint64_t pages = 0;
  for (Implementation* file : files) {
    file->dirty_pages_ += file->in_hand_->size();
    pages += file->in_hand_->size();
  }
  // What is compared is compared with the base.
  PAWL_TRY(first.settle_in_place());
  return pages > kStagedPagesMax ? commit_direct(files) : commit_staged(files, durability);
}

Status Mapping::Implementation::commit_locked(std::uint64_t first_page, std::uint64_t end_page,
                                              Durability durability) {
  if (is_broken(Law::only_the_range)) {
    first_page = 0;
    end_page = ~std::uint64_t{0};
  }
  PAWL_TRY(check_before_commit());
  PAWL_TRY(check_journal_of_group());
  PAWL_TRY(take_in_hand(first_page, end_page));
  if (lines_are_enough(taken_)) return commit_lines(first_page, end_page);
  Implementation* const own = this;
  return commit_taken({&own, 1}, first_page, end_page, durability);
}

Status Mapping::Implementation::commit_whole(Files files, Durability durability) {
  constexpr std::uint64_t kAllPages = ~std::uint64_t{0};
  std::size_t taken = 0;
  const auto take_all = [&]() -> Status {
    for (Implementation* file : files) PAWL_TRY(file->check_before_commit());
    PAWL_TRY(files.front()->check_journal_of_group());
    for (; taken < files.size(); ++taken) PAWL_TRY(files[taken]->take_in_hand(0, kAllPages));
    return {};
  };
  Status status;
  try {
    status = take_all();
  } catch (const std::bad_alloc&) {
    status = Status::no_memory(kNoMemory);
  }
  if (!status.ok()) {
    give_back(files.first(taken));
    return status;
  }
  return commit_taken(files, 0, kAllPages, durability);
}

// Nothing is lost: the next commit finds the pages again.
void Mapping::Implementation::give_back(Files files) {
  if (is_broken(Law::keep_what_failed)) return;
  for (Implementation* file : files) file->keep_pages(file->taken_);
}

Status Mapping::Implementation::commit_taken(Files files, std::uint64_t first_page,
                                             std::uint64_t end_page, Durability durability) {
  Status status;
  try {
    for (Implementation* file : files) {
      if (status.ok()) status = file->join_outside(first_page, end_page);
    }
    if (status.ok()) status = commit_in_hand(files, durability);
  } catch (const std::bad_alloc&) {
    status = Status::no_memory(kNoMemory);
  }
  for (Implementation* file : files) file->image_.end_commit();
  if (!status.ok()) {
    give_back(files);
    return why_not_committed(status);
  }
  for (Implementation* file : files) {
    file->outside_.clear();
    file->private_pages_ += file->taken_.size();
  }
  end_commit(files, first_page, end_page);
  return {};
}

// The commit is durable already; what fails from here on is the next call's, if it is one.
void Mapping::Implementation::end_commit(Files files, std::uint64_t first_page,
                                         std::uint64_t end_page) {
  try {
    after_commit(files, first_page, end_page);
  } catch (const std::bad_alloc&) {
    [[maybe_unused]] const Status noted =
        files.front()->note(Status::no_memory("no memory after a commit"));
  }
}

void Mapping::Implementation::after_commit(Files files, std::uint64_t first_page,
                                           std::uint64_t end_page) {
  Implementation& first = *files.front();
  // The rest of the way into the base is closed: the record must stay.
  if (!first.usable().ok()) return;
  // Of whichever file: the background may be in want of space for one of them alone.
  first.make_room(std::any_of(files.begin(), files.end(),
                              [](const Implementation* file) { return file->overlay_is_full(); }));
  for (Implementation* file : files) {
    const View& view = file->view_;
    if (!view.mapped() || first_page > view.first_page() || end_page < view.accessible_end_page())
      continue;
    if (const Status bounded = file->bound_memory(); !bounded.ok()) file->note_final(bounded);
  }
}

// In the overlay and in the journal.
void Mapping::Implementation::make_room(bool an_overlay_is_full) {
  if (base_in_place_ == nullptr && (options_.apply == ApplyChoice::eager || an_overlay_is_full)) {
    // With on-fail it is hardly ever empty; what goes wrong is noted by the one who writes it.
    if (an_overlay_is_full && log_->writes_behind()) {
      [[maybe_unused]] const Status written = batches_.wait();
    }
    if (batches_.idle()) {
      [[maybe_unused]] const Status applied = note(checkpointer_.apply_now());
    }
  }
  if (journal_->has_outgrown() && !journal_->is_held()) shrink_journal();
  if (base_in_place_ != nullptr) {
    if (journal_->wants_growth()) {
      [[maybe_unused]] const Status grown = note(journal_->grow().status());
    }
    if (checkpointer_.is_due() && settle_in_place().ok()) {
      [[maybe_unused]] const Status dropped = note(checkpointer_.checkpoint_now());
    }
  } else {
    checkpointer_.nudge();
  }
}

// A record that was larger than the journal is applied at once, so that the disk gets its space
// back.  Where the base has no space to take it (a copy-on-write file system that is full), a later
// commit tries again.
void Mapping::Implementation::shrink_journal() {
  if (const Status queued = batches_.wait(); !queued.ok()) return note_final(queued);
  if (!settle_in_place().ok()) return;
  if (!note(checkpointer_.checkpoint_now()).ok()) return;
  if (const Status cut = journal_->give_growth_back(); !cut.ok()) note_final(cut);
}

// After a commit of the whole window its private pages equal the base once that is applied: they
// can be given back, and are read from the page cache when next touched.  Not beside other threads:
// the kernel has no call that drops a page only if nobody has stored to it, and between the look
// and the drop a store would be lost.
Status Mapping::Implementation::bound_memory() {
  if (private_pages_ * kPageBytes <= options_.resident_bytes_max) return {};
  if (has_other_threads()) {
    private_pages_ = 0;  // not each commit is to try
    return {};
  }
  // What is not durable cannot be applied.  With on-fail, and with MS_ASYNC, something is queued
  // nearly always: to wait for the first moment without would be to have no bound.
  if (!batches_.wait().ok() || !settle_in_place().ok()) return {};
  if (!note(checkpointer_.apply_now()).ok()) return {};
  if (image_.waiting_pages() > 0 || size_is_pending() || !outside_.empty()) return {};
  // Nor does a signal handler of the program's run now, which could also have started a thread.
  const QuietSection quiet;
  if (has_other_threads()) return {};
  TakenPages late;
  if (!note(take_pages(view_.first_page(), view_.accessible_end_page(), late)).ok()) return {};
  if (!late.empty()) {
    keep_pages(late);
    return {};
  }
  const Status shown = view_.show_base();
  if (shown.ok()) pages_dropped_ += private_pages_;
  private_pages_ = 0;  // also where they could not be given back
  return shown.error_number() == EIO ? shown : Status{};
}

}  // namespace pawl
