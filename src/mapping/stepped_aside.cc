// A mapping whose file loses its name, or gets another: all that was committed is in the file, and
// what was not goes on in memory, here, into the nameless file or into a mapping opened anew.
//
// The lock on the journal, and the notices of a writer, stay until the file is nameless or another
// mapping has them: what is in memory is only right on top of what the last commit left.

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "mapping/group.h"
#include "mapping/implementation.h"
#include "mapping/recovery.h"

namespace pawl {

namespace {

// Nothing failed that a commit counts on: the file system did not let the mark or a name go.
bool is_refusal(const Status& status) {
  return status.code() == PAWL_ERROR_LEFT_BEHIND || status.code() == PAWL_ERROR_NO_SPACE_FOR_MARK;
}

}  // namespace

Status Mapping::Implementation::step_aside_locked(Aside aside) {
  PAWL_TRY(usable());
  PAWL_TRY(note(checkpoint_all()));
  Status ended;
  Status back;
  try {
    ended = let_go(aside);
    if (!ended.ok()) back = is_refusal(ended) ? come_back() : ended;
  } catch (const std::bad_alloc&) {
    ended = back = Status::no_memory("no memory to let go of a file");
  }
  if (ended.ok() && aside == Aside::is_ended) medium_->is_writer_no_more();
  if (ended.ok()) closed_.store(true);
  if (!back.ok()) note_final(back);
  return ended;
}

// What a crash leaves from here on is a file that is whole by itself, and perhaps a journal of
// nobody under a provisional name.
Status Mapping::Implementation::let_go(Aside aside) {
  if (Status stays = medium_->stay_the_writer(); !stays.ok()) {
    // As where there is no room for the mark to go: it stays with a file that loses its name; and
    // one that is ended hardly comes back.
    if (!is_want_of_space(stays.error_number())) return stays;
    if (aside == Aside::loses_name && group_ == nullptr) return {};
    if (aside != Aside::is_ended) return stays;
  }
  if (group_ != nullptr) {
    PAWL_TRY(leave_locked());
    // Other threads may have a file join until it comes back.
    keeps_number_ = aside == Aside::loses_name || aside == Aside::is_renamed;
    PAWL_TRY(keeps_number_ ? group_->set_aside(number_) : group_->strike(number_));
  } else if (aside == Aside::is_ended) {
    PAWL_TRY(unmark(*medium_, *journal_));
  } else {
    // Without its space the journal could not come back.
    Status unmarked = unmark(*medium_);
    if (aside == Aside::loses_name && is_want_of_space(unmarked.error_number())) return {};
    PAWL_TRY(unmarked);
  }
  if (aside == Aside::loses_name || aside == Aside::is_renamed) {
    Status hidden = medium_->hide_journal();
    if (!is_want_of_space(hidden.error_number())) return hidden;
  }
  PAWL_TRY(medium_->remove_journal());
  has_journal_ = false;
  return {};
}

Status Mapping::Implementation::come_back_locked() {
  PAWL_ASSERT(closed_.load());
  if (!has_journal_) return Status::failure(ENOENT, medium_->path() + " has no journal any more");
  if (log_->failures().has_final()) return Status::failure(EIO, log_->failures().final_text());
  PAWL_TRY(come_back());
  closed_.store(false);
  return {};
}

Status Mapping::Implementation::give_journal_up_locked() {
  PAWL_ASSERT(closed_.load());
  const bool had_journal = std::exchange(has_journal_, false);
  Status removed = had_journal ? medium_->remove_journal() : Status{};
  if (number_ == 0) {
    journal_->let_go_of_file();
  } else {
    member_side_.reset();
    if (std::exchange(keeps_number_, false)) group_->erase(number_);
  }
  return removed;
}

// The empty journal is still there, with the writer's lock, so the file takes commits once all that
// names the journal does so again.  Joining a group has the same order.
Status Mapping::Implementation::come_back() {
  if (!journal_->has_ring())
    return Status::failure(ENOSPC, "the journal of " + medium_->path() + " gave its space back");
  PAWL_TRY(medium_->show_journal());
  const JournalId& id = journal_->id();
  // Listed and without a mark it does no harm.
  if (has_left_) PAWL_TRY(group_->list_again(number_, *this));
  const auto mark = medium_->mark();
  if (!mark.ok()) return mark.status();
  const bool is_marked =
      mark.value().has_value() && !mark.value()->is_opening && mark.value()->journal_id == id;
  if (!is_marked) {
    PAWL_TRY(medium_->claim(id));
    PAWL_TRY(medium_->set_mark({id, medium_->journal_path()}));
    has_left_ = false;
    PAWL_TRY(medium_->base().flush());
  }
  has_left_ = keeps_number_ = false;
  return group_ == nullptr ? Status{} : member_side_->enter_again();
}

Status Mapping::Implementation::put_in_base(std::uint64_t page,
                                            std::span<const std::byte> bytes) const {
  const std::uint64_t offset = page * kPageBytes;
  if (offset >= size_) return {};
  return medium_->base().write(offset,
                               bytes.first(std::min<std::uint64_t>(kPageBytes, size_ - offset)));
}

Status Mapping::Implementation::leave_in_base_locked() {
  PAWL_ASSERT(closed_.load());
  const auto put_all = [&]() -> Status {
    auto present = medium_->base().size();
    if (!present.ok()) return present.status();
    if (lowest_size_ < present.value()) PAWL_TRY(medium_->base().resize(lowest_size_));
    PAWL_TRY(medium_->base().resize(size_));
    tracker_->clear_markers_behind_cut();
    std::vector<std::byte> bytes(kPageBytes);
    TakenPages left;
    PAWL_TRY(take_pages(0, ~std::uint64_t{0}, left));
    for (const StoredLines& stored : left) {
      PAWL_TRY(load_from_view(stored.page, 0, bytes));
      PAWL_TRY(put_in_base(stored.page, bytes));
    }
    for (const auto& [page, written] : outside_) PAWL_TRY(put_in_base(page, written->bytes));
    return {};
  };
  Status outcome = put_all();
  outside_.clear();
  view_.unmap();
  return outcome;
}

void Mapping::Implementation::leave_in_memory_locked() noexcept {
  PAWL_ASSERT(closed_.load());
  outside_.clear();
  view_.leave();
}

// The window's memory stays as it is, watched by the same tracker: a store, of whatever thread or
// system call and at whatever moment, is before its next collection or behind it, and so in a
// commit. Were the memory replaced, by a copy or by the file, a store between copying and replacing
// would vanish; and nothing makes all threads, and system calls that store, wait for that long.
//
// To the new mapping the memory is what its own would be: it shows the base, which has all commits
// of the old one, but for the pages that the tracker will report and those that are pending.
void Mapping::Implementation::take_over_locked(Implementation& aside) {
  PAWL_ASSERT(aside.closed_.load() && !view_.mapped() && outside_.empty());
  std::swap(tracker_, aside.tracker_);
  view_.take_over(aside.view_);
  size_ = aside.size_;
  lowest_size_ = std::min(aside.lowest_size_, image_.size());
  pending_ = std::exchange(aside.pending_, {});
  unsure_first_ = aside.unsure_first_;
  unsure_end_ = aside.unsure_end_;
  aside.forget_pages();
  outside_ = std::exchange(aside.outside_, {});
  private_pages_ = aside.private_pages_;
}

}  // namespace pawl
