// Commit and rollback: the way of a store from the working view into a durable record.

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "journal/reader.h"
#include "journal/record_ranges.h"
#include "mapping/implementation.h"
#include "mapping/page_diff.h"
#include "mapping/place_in_hand.h"
#include "medium/idle_poll.h"
#include "medium/law.h"

namespace pawl {
namespace {

std::uint64_t wall_clock_ns() {
  timespec now{};
  // To the kernel's tick: for people, and read for less than a precise one.
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool is_want_of_space(const Status& status) {
  const int error_number = status.error_number();
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

constexpr const char* kNoMemory = "no memory for the commit; free some and call again";

}  // namespace

std::byte* Mapping::Implementation::bytes_now(std::uint64_t page) {
  if (view_.accessible(page)) return view_.bytes(page);
  return outside_.at(page)->bytes.data();
}

Result<CommittedImage::Page> Mapping::Implementation::page_before(std::uint64_t page) {
  PAWL_TRY(settle_in_place());
  auto committed = image_.page(page);
  const std::uint64_t start = page * kPageBytes;
  if (!committed.ok() || lowest_size_ >= image_.size() || lowest_size_ >= start + kPageBytes)
    return committed;
  // The record will cut the file to lowest_size_ first.
  CommittedImage::Page cut = image_.copy(committed.value());
  const std::size_t kept = lowest_size_ > start ? lowest_size_ - start : 0;
  std::memset(cut->bytes.data() + kept, 0, kPageBytes - kept);
  return cut;
}

// Committed bytes that can be loaded where they are: of a page that the base has whole, on a medium
// that is memory, where nothing waits to be applied.
const std::byte* Mapping::Implementation::committed_in_place(std::uint64_t page) const {
  const std::uint64_t end = (page + 1) * kPageBytes;
  if (base_in_place_ == nullptr || end > lowest_size_ || end > image_.size()) return nullptr;
  return base_in_place_ + page * kPageBytes;
}

// Whether marked lines are logged without a comparison: to read the page from the base costs more
// than to log a line that did not change.  A page that waits in the overlay, as one that is stored
// to again and again does, is compared there.
bool Mapping::Implementation::marks_are_enough(std::uint64_t page, std::uint64_t lines) const {
  return lines != kAllLines && (page + 1) * kPageBytes <= lowest_size_ &&
         lowest_size_ <= image_.size() && image_.only_in_base(page);
}

Status Mapping::Implementation::collect_changes(const TakenPages& pages,
                                                journal::RecordBuilder& record,
                                                std::vector<Change>* changes) {
  PageRuns changed_runs;
  for (const auto& [page, lines] : pages) {
    const std::uint64_t start = page * kPageBytes;
    if (start >= size_) continue;
    const std::size_t valid = std::min<std::uint64_t>(kPageBytes, size_ - start);
    CommittedImage::Page copy;
    const std::byte* then = committed_in_place(page);
    const bool in_place = then != nullptr;
    if (in_place) {
      // Even a load may take space there.
      if (!is_broken(Law::space_first)) PAWL_TRY(image_.reserve_space_in_place(start, kPageBytes));
    } else if (!marks_are_enough(page, lines)) {
      auto committed = page_before(page);
      if (!committed.ok()) return committed.status();
      copy = std::move(committed.value());
      then = copy->bytes.data();
    }
    const std::byte* now = bytes_now(page);
    PageBuffer closed_page;
    if (view_.accessible(page) && (view_.protection_at(page) & (PROT_READ | PROT_WRITE)) == 0) {
      PAWL_TRY(load_from_view(page, 0, closed_page.bytes));
      now = closed_page.bytes.data();
    }
    std::uint64_t changed_lines = 0;
    const auto take = [&](std::size_t offset, std::size_t length) {
      changed_lines |= line_bits(offset, length);
      return record.add(start + offset, {now + offset, length});
    };
    PAWL_TRY(then == nullptr ? for_lines(lines, valid, take)
                             : for_changed_lines(now, then, valid, lines, take));
    if (changed_lines == 0) continue;
    if (page_check_ && view_.accessible(page)) PAWL_TRY(page_check_(page, changed_lines));
    changed_pages_ += 1;
    if (in_place) continue;
    changed_runs.add(page);
    if (changes != nullptr) changes->push_back({page, std::move(copy)});
  }
  // Law 7, for whole runs: pages that are asked for one by one lie scattered on the disk.
  for (const PageRun& run : changed_runs.runs()) {
    if (is_broken(Law::space_first)) break;
    PAWL_TRY(image_.reserve_space(run.first * kPageBytes, run.count * kPageBytes));
  }
  // A size that no file can have must be refused now, not when the record is applied.
  if (size_ > image_.size()) PAWL_TRY(image_.reserve_space(size_ - 1, 1));
  return {};
}

journal::RecordHeader Mapping::Implementation::header_for(const journal::Place& place) const {
  journal::RecordHeader header;
  header.epoch = journal_->epoch();
  header.sequence = place.sequence;
  header.file_size = size_;
  header.truncate_to = lowest_size_ < image_.size() ? lowest_size_ : journal::kNoTruncation;
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
    if (place.ok() || !is_want_of_space(place.status())) return place;
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

// The image takes the bytes from the record, not from memory: what is logged is what is committed.
// Out of memory here, the image is behind the journal: the next open brings it up.
bool Mapping::Implementation::patch_image(std::span<const std::byte> record,
                                          const std::vector<Change>& changes,
                                          std::uint64_t sequence) {
  try {
    patch_image_with(record, changes, sequence);
    return true;
  } catch (const std::bad_alloc&) {
    note_final(Status::no_memory("no memory for the committed image"));
    return false;
  }
}

void Mapping::Implementation::patch_image_with(std::span<const std::byte> record,
                                               const std::vector<Change>& changes,
                                               std::uint64_t sequence) {
  const journal::RecordHeader header = journal::header_of(record);
  if (header.truncate_to != journal::kNoTruncation) image_.truncate(header.truncate_to, sequence);
  image_.set_size(header.file_size, sequence);
  auto change = changes.begin();
  const Status patched = journal::for_ranges(
      record, [&](std::uint64_t offset, std::span<const std::byte> content) -> Status {
        while (!content.empty()) {
          const std::uint64_t in_page = offset % kPageBytes;
          const std::size_t piece = std::min<std::size_t>(kPageBytes - in_page, content.size());
          while (change != changes.end() && change->page < offset / kPageBytes) ++change;
          PAWL_ASSERT(change != changes.end() && change->page == offset / kPageBytes);
          image_.patch(change->page, change->committed, in_page, content.first(piece), sequence);
          content = content.subspan(piece);
          offset += piece;
        }
        return {};
      });
  PAWL_ASSERT(patched.ok());
}

void Mapping::Implementation::count(const journal::Place& place,
                                    const journal::RecordBuilder& record) {
  commits_ += 1;
  bytes_logged_ += place.bytes;
  bytes_changed_ += record.content_bytes();
}

Status Mapping::Implementation::commit_staged(const TakenPages& pages, Durability durability) {
  journal::RecordBuilder record(journal_->block_bytes(), {}, std::move(record_memory_));
  std::vector<Change> changes;
  PAWL_TRY(collect_changes(pages, record, &changes));
  if (record.empty() && !size_is_pending()) {
    return durability == Durability::now ? batches_.wait() : Status{};
  }
  if (base_in_place_ != nullptr) {
    const Status committed = commit_in_place(record);
    record_memory_ = record.take_buffer();
    return committed;
  }
  auto place = place_for(record.record_bytes());
  if (!place.ok()) return place.status();
  PlaceInHand in_hand(*journal_, place.value());
  PAWL_TRY(record.finish(header_for(place.value())));
  PAWL_ASSERT(record.block().size() == place.value().bytes);
  const std::uint64_t sequence = place.value().sequence;

  // Batches that are still queued must become durable first; then the record joins them and shares
  // their flush.
  if (durability == Durability::queued || !batches_.idle()) {
    in_hand.keep();
    // With part of it in the image the record must not become durable, and then be dropped.
    if (!patch_image(record.block(), changes, sequence)) return usable();
    count(place.value(), record);
    lowest_size_ = size_;
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
  if (!written.ok()) {
    if (written.error_number() != EIO) return written;
    in_hand.keep();
    note_final(written);
    return usable();
  }
  in_hand.keep();
  log_->set_durable(sequence);
  count(place.value(), record);
  // With part of it in the image the record must not count as applied, and be dropped.
  if (patch_image(record.block(), changes, sequence)) image_.durable(sequence);
  record_memory_ = record.take_buffer();
  lowest_size_ = size_;
  return {};
}

// From here on the commit is durable; what fails now ends the mapping, and the next open completes
// it.
Status Mapping::Implementation::apply_direct(const journal::Place& place) {
  auto reader = journal::Reader::open(journal_->file());
  if (!reader.ok()) return reader.status();
  reader.value().begin_at(place.offset, place.sequence);
  auto record = reader.value().next();
  if (!record.ok()) return record.status();
  if (!record.value().has_value() || record.value()->header.sequence != place.sequence) {
    return Status::failure(EIO, "the journal " + medium_->journal_path() +
                                    " does not hold what was just written to it");
  }
  const journal::RecordHeader& header = record.value()->header;
  PAWL_TRY(image_.begin_direct(header.truncate_to, header.file_size, place.sequence));
  PAWL_TRY(reader.value().visit(*record.value(),
                                [&](std::uint64_t offset, std::span<const std::byte> bytes) {
                                  return image_.direct(offset, bytes);
                                }));
  return image_.end_direct(place.sequence);
}

Status Mapping::Implementation::commit_direct(const TakenPages& pages) {
  if (journal_->is_held() && journal_->can_grow()) {
    PAWL_TRY(apply_all());
    const std::uint64_t changed_before = changed_pages_;
    Status committed = commit_behind_the_rest(pages);
    if (!is_want_of_space(committed)) return committed;
    // The snapshot gives way.
    changed_pages_ = changed_before;
  }
  PAWL_TRY(checkpoint_all());
  return commit_behind_the_rest(pages);
}

// With everything applied; and nothing else in the journal, unless a snapshot reads it.
Status Mapping::Implementation::commit_behind_the_rest(const TakenPages& pages) {
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
  bool nothing = false;
  const auto build = [&]() -> Status {
    PAWL_TRY(collect_changes(pages, record, nullptr));
    nothing = record.empty() && !size_is_pending();
    if (nothing) return {};
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
  if (!built.ok() || nothing) {
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
  count(place, record);
  lowest_size_ = size_;
  Status applied;
  try {
    applied = checkpointer_.apply_directly([&] { return apply_direct(place); });
  } catch (const std::bad_alloc&) {
    applied = Status::no_memory("no memory for the committed image");
  }
  if (!applied.ok()) note_final(applied);
  return {};
}

Status Mapping::Implementation::commit_pages(const TakenPages& taken, Durability durability) {
  if (outside_.empty()) return commit_in_order(taken, durability);
  TakenPages pages = taken;
  for (const auto& [page, bytes] : outside_) pages.push_back({page, kAllLines});
  join(pages);
  return commit_in_order(pages, durability);
}

Status Mapping::Implementation::commit_in_order(const TakenPages& pages, Durability durability) {
  dirty_pages_ += pages.size();
  // What is compared is compared with the base.
  PAWL_TRY(settle_in_place());
  return pages.size() > kStagedPagesMax ? commit_direct(pages) : commit_staged(pages, durability);
}

Status Mapping::Implementation::commit_locked(std::uint64_t first_page, std::uint64_t end_page,
                                              Durability durability) {
  taken_.clear();
  if (is_broken(Law::only_the_range)) {
    first_page = 0;
    end_page = ~std::uint64_t{0};
  }
  PAWL_TRY(take_pages(first_page, end_page, taken_));
  if (lines_are_enough(taken_)) return commit_lines(first_page, end_page);
  Status status;
  try {
    if (options_.verify && tracker_->knows_lines())
      status = find_unmarked(first_page, end_page, taken_);
    if (status.ok()) status = commit_pages(taken_, durability);
  } catch (const std::bad_alloc&) {
    status = Status::no_memory(kNoMemory);
  }
  image_.end_commit();
  if (!status.ok()) {
    // Nothing is lost: the next commit finds the pages again.
    if (!is_broken(Law::keep_what_failed)) keep_pages(taken_);
    return status;
  }
  outside_.clear();
  private_pages_ += taken_.size();
  end_commit(first_page, end_page);
  return {};
}

// The commit is durable already; what fails from here on is the next call's, if it is one.
void Mapping::Implementation::end_commit(std::uint64_t first_page, std::uint64_t end_page) {
  try {
    after_commit(first_page, end_page);
  } catch (const std::bad_alloc&) {
    [[maybe_unused]] const Status noted = note(Status::no_memory("no memory after a commit"));
  }
}

void Mapping::Implementation::after_commit(std::uint64_t first_page, std::uint64_t end_page) {
  // The rest of the way into the base is closed: the record must stay.
  if (!usable().ok()) return;
  if (base_in_place_ == nullptr && (options_.apply == ApplyChoice::eager || overlay_is_full())) {
    if (batches_.idle()) {
      [[maybe_unused]] const Status applied = note(checkpointer_.apply_now());
    }
  }
  if (journal_->has_grown() && !journal_->is_held()) shrink_journal();
  if (base_in_place_ != nullptr) {
    if (checkpointer_.is_due() && settle_in_place().ok()) {
      [[maybe_unused]] const Status dropped = note(checkpointer_.checkpoint_now());
    }
  } else {
    checkpointer_.nudge();
  }
  if (view_.mapped() && first_page <= view_.first_page() &&
      end_page >= view_.accessible_end_page()) {
    if (const Status bounded = bound_memory(); !bounded.ok()) note_final(bounded);
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
// can be given back, and are read from the page cache when next touched.
Status Mapping::Implementation::bound_memory() {
  if (private_pages_ * kPageBytes <= options_.resident_bytes_max || !batches_.idle()) return {};
  if (!settle_in_place().ok()) return {};
  if (!note(checkpointer_.apply_now()).ok()) return {};
  if (image_.waiting_pages() > 0 || size_is_pending() || !outside_.empty()) return {};
  // A thread that stores during the commit breaks its contract; its store is not dropped for that.
  TakenPages late;
  if (!note(take_pages(view_.first_page(), view_.accessible_end_page(), late)).ok()) return {};
  if (!late.empty()) {
    keep_pages(late);
    return {};
  }
  PAWL_TRY(show_base());
  pages_dropped_ += private_pages_;
  private_pages_ = 0;
  return {};
}

Status Mapping::Implementation::show_base() {
  try {
    return view_.show_base(size_);
  } catch (const std::bad_alloc&) {
    return Status::no_memory("no memory to map the file anew");
  }
}

Status Mapping::Implementation::roll_back_locked(std::uint64_t first_page, std::uint64_t end_page,
                                                 bool whole) {
  PAWL_TRY(apply_all());
  PAWL_ASSERT(image_.waiting_pages() == 0);
  rollbacks_ += 1;
  TakenPages taken;
  PAWL_TRY(take_pages(first_page, end_page, taken));
  if (whole) {
    outside_.clear();
    forget_pages();
    size_ = lowest_size_ = image_.size();
    private_pages_ = 0;
    if (!view_.mapped()) return {};
    const Status shown = show_base();
    if (!shown.ok()) note_final(shown);  // part of the view may be untracked now
    return shown;
  }
  Status status;
  try {
    status = roll_back_pages(taken);
  } catch (const std::bad_alloc&) {
    status = Status::no_memory("no memory for the rollback; free some and call again");
  }
  // What was not rolled back is still to be committed.
  if (!status.ok()) keep_pages(taken);
  return status;
}

Status Mapping::Implementation::roll_back_pages(const TakenPages& taken) {
  return for_runs(taken, [&](const PageRun& run) -> Status {
    const std::uint64_t file_end = std::clamp(view_.file_end_page(), run.first, run.end());
    // Pages that are locked in memory cannot be dropped; they are copied like those of growth.
    const bool dropped =
        file_end > run.first && view_.show_base_pages(run.first, file_end - run.first).ok();
    for (std::uint64_t page = run.first; page < run.end(); ++page) {
      const bool cut = lowest_size_ < (page + 1) * kPageBytes && lowest_size_ < image_.size();
      if (page < file_end && dropped && !cut) continue;
      auto committed = page_before(page);
      if (!committed.ok()) return committed.status();
      PAWL_TRY(store_in_view(page * kPageBytes, committed.value()->bytes));
    }
    return {};
  });
}

}  // namespace pawl
