#include "mapping/mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "mapping/implementation.h"

namespace pawl {

Status Mapping::Implementation::in_own_process() const {
  if (!is_in_child()) return {};
  return Status::failure(EPERM, PAWL_ERROR_FORKED_CHILD,
                         "this process was forked from the one that mapped " + medium_->path() +
                             "; a child may read its copy and not change the file. Map "
                             "the file in the process that is to write it");
}

Status Mapping::Implementation::why_not_usable() const {
  PAWL_TRY(in_own_process());
  if (closed_.load())
    return Status::failure(EINVAL, PAWL_ERROR_CLOSED, medium_->path() + " is closed; map it again");
  if (log_->failures().has_final()) {
    return Status::failure(EIO, PAWL_ERROR_MAPPING_BROKEN,
                           medium_->path() +
                               " takes no more commits since a failure that may have lost bytes: " +
                               log_->failures().final_text() +
                               ". Unmap it; the next map recovers its last durable state");
  }
  return {};
}

Status Mapping::Implementation::pages_of(const void* address, std::size_t length,
                                         std::uint64_t& first, std::uint64_t& end) const {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  if (start % kPageBytes != 0)
    return Status::failure(EINVAL, "the address must be a multiple of the page size (4096)");
  const auto window = reinterpret_cast<std::uintptr_t>(view_.address());
  if (!view_.mapped() || start < window || length > view_.length() ||
      start - window >
          view_.length() - std::min<std::size_t>(round_up(length, kPageBytes), view_.length())) {
    return Status::failure(ENOMEM, PAWL_ERROR_NOT_MAPPED,
                           "the range is not wholly within the mapping of " + medium_->path());
  }
  first = view_.first_page() + (start - window) / kPageBytes;
  end = first + round_up(length, kPageBytes) / kPageBytes;
  return {};
}

// One call at a time.  In a forked child the lock may be held for ever, so that is asked first.
template <class Outcome, class Call>
Outcome Mapping::Implementation::in_turn(Call call) {
  if (is_in_child()) return in_own_process();
  const std::lock_guard lock(mutex_);
  return call(*this);
}

// The same, on a mapping that takes calls.
template <class Outcome, class Call>
Outcome Mapping::Implementation::in_order(Call call) {
  return in_turn<Outcome>([&](Implementation& own) -> Outcome {
    if (Status refused = own.usable(); !refused.ok()) return refused;
    return call(own);
  });
}

// The same on the file pages of an address range; failures count as the mapping's.
template <class Call>
Status Mapping::Implementation::on_range(const void* address, std::size_t length, Call call) {
  return in_order<Status>([&](Implementation& own) -> Status {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    PAWL_TRY(own.pages_of(address, length, first, end));
    return own.note(call(own, first, end));
  });
}

Mapping::Mapping(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Mapping::~Mapping() {
  // In a forked child the background threads do not exist and cannot be joined; the memory goes
  // with the process.
  if (implementation_->is_in_child()) [[maybe_unused]]
    auto* const left = implementation_.release();
}

Result<std::unique_ptr<Mapping>> Mapping::open(std::unique_ptr<Medium> medium,
                                               const Options& options) {
  return Implementation::open(std::move(medium), options);
}

Result<char*> Mapping::map_window(void* address, std::size_t length, int protection, int flags,
                                  std::uint64_t file_offset) {
  return implementation_->in_order<Result<char*>>([&](Implementation& own) {
    return own.map_window_locked(address, length, protection, flags, file_offset);
  });
}

Status Mapping::unmap_window(bool keep) {
  if (implementation_->is_in_child()) return implementation_->in_own_process();
  const std::lock_guard lock(implementation_->mutex_);
  return implementation_->unmap_window_locked(keep);
}

Result<char*> Mapping::remap_window(std::size_t new_length, bool may_move, void* fixed_address,
                                    memory::LeftPlace& left) {
  return implementation_->in_order<Result<char*>>([&](Implementation& own) {
    return own.remap_window_locked(new_length, may_move, fixed_address, left);
  });
}

Status Mapping::shorten_window(std::size_t length, memory::LeftPlace& left) {
  return implementation_->in_order<Status>([&](Implementation& own) -> Status {
    if (!own.view_.mapped())
      return Status::failure(EINVAL, PAWL_ERROR_NOT_MAPPED, own.medium_->path() + " is not mapped");
    own.view_.shorten(length, left);
    return {};
  });
}

Status Mapping::protect_window(void* address, std::size_t length, int protection) {
  return implementation_->on_range(
      address, length, [&](Implementation& own, std::uint64_t first, std::uint64_t end) {
        return own.view_.protect(static_cast<char*>(address), (end - first) * kPageBytes,
                                 protection);
      });
}

Status Mapping::advise(void* address, std::size_t length, int advice) {
  return implementation_->on_range(
      address, length, [advice](Implementation& own, std::uint64_t first, std::uint64_t end) {
        return own.advise_locked(first, end, advice);
      });
}

Status Mapping::lock_memory(void* address, std::size_t length, unsigned flags) {
  return implementation_->on_range(
      address, length, [flags](Implementation& own, std::uint64_t first, std::uint64_t end) {
        return own.lock_memory_locked(first, end, flags);
      });
}

Status Mapping::clear_markers(void* address, std::size_t length) {
  // Also where no more commits are taken.
  if (implementation_->is_in_child()) return implementation_->in_own_process();
  const std::lock_guard lock(implementation_->mutex_);
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  PAWL_TRY(implementation_->pages_of(address, length, first, end));
  return implementation_->clear_markers_locked(first, end);
}

std::optional<Window> Mapping::window() const {
  std::unique_lock lock(implementation_->mutex_, std::defer_lock);
  if (!implementation_->is_in_child()) lock.lock();
  const View& view = implementation_->view_;
  if (!view.mapped()) return std::nullopt;
  return Window{view.address(), view.length(), view.file_offset(), view.protection(), view.parts()};
}

Status Mapping::commit(void* address, std::size_t length) {
  return implementation_->on_range(
      address, length, [](Implementation& own, std::uint64_t first, std::uint64_t end) {
        return own.commit_locked(first, end, Implementation::Durability::now);
      });
}

Status Mapping::commit_all() {
  return implementation_->in_order<Status>([](Implementation& own) {
    return own.note(own.commit_locked(0, ~std::uint64_t{0}, Implementation::Durability::now));
  });
}

Status Mapping::commit_async(void* address, std::size_t length) {
  return implementation_->on_range(
      address, length, [](Implementation& own, std::uint64_t first, std::uint64_t end) {
        return own.commit_locked(first, end, Implementation::Durability::queued);
      });
}

Status Mapping::wait() {
  if (implementation_->is_in_child()) return implementation_->in_own_process();
  Status waited = implementation_->batches_.wait();
  PAWL_TRY(implementation_->usable());
  return waited;
}

Status Mapping::roll_back(void* address, std::size_t length) {
  return implementation_->on_range(
      address, length, [](Implementation& own, std::uint64_t first, std::uint64_t end) {
        const View& view = own.view_;
        const bool whole =
            first == view.first_page() && end == view.first_page() + view.length() / kPageBytes;
        return own.roll_back_locked(first, end, whole);
      });
}

void Mapping::check_pages_with(PageCheck check) {
  const std::lock_guard lock(implementation_->mutex_);
  implementation_->page_check_ = std::move(check);
}

std::uint64_t Mapping::size() const {
  if (implementation_->is_in_child()) return implementation_->size_;
  const std::lock_guard lock(implementation_->mutex_);
  return implementation_->size_;
}

Status Mapping::truncate(std::uint64_t size_bytes) {
  return implementation_->in_order<Status>(
      [&](Implementation& own) { return own.truncate_locked(size_bytes); });
}

Status Mapping::allocate(std::uint64_t offset, std::uint64_t length) {
  return implementation_->in_order<Status>([&](Implementation& own) -> Status {
    if (length == 0 || length > own.size_bytes_max() || offset > own.size_bytes_max() - length)
      return Status::failure(EINVAL, "no such range can be allocated");
    PAWL_TRY(own.image_.reserve_space(offset, length));
    return offset + length > own.size_ ? own.truncate_locked(offset + length) : Status{};
  });
}

Result<std::size_t> Mapping::read(std::uint64_t offset, std::span<std::byte> into) {
  if (implementation_->is_in_child()) return implementation_->read_locked(offset, into);
  const std::lock_guard lock(implementation_->mutex_);
  return implementation_->read_locked(offset, into);
}

Status Mapping::write(std::uint64_t offset, std::span<const std::byte> from) {
  return implementation_->in_order<Status>(
      [&](Implementation& own) { return own.write_locked(offset, from); });
}

bool Mapping::has_pending_changes() {
  if (implementation_->is_in_child()) return false;
  const std::lock_guard lock(implementation_->mutex_);
  Implementation& own = *implementation_;
  if (own.size_is_pending() || !own.outside_.empty() || !own.pending_.empty()) return true;
  TakenPages taken;
  const Status status = own.take_pages(0, ~std::uint64_t{0}, taken);
  const bool is_changed = !status.ok() || !taken.empty();
  own.keep_pages(taken);
  return is_changed;
}

Status Mapping::close() {
  return implementation_->in_turn<Status>(
      [](Implementation& own) { return own.note(own.close_locked()); });
}

Status Mapping::discard() {
  return implementation_->in_turn<Status>([](Implementation& own) { return own.discard_locked(); });
}

Status Mapping::step_aside(Aside aside) {
  return implementation_->in_order<Status>(
      [&](Implementation& own) { return own.step_aside_locked(aside); });
}

Status Mapping::come_back() {
  return implementation_->in_turn<Status>(
      [](Implementation& own) { return own.come_back_locked(); });
}

Status Mapping::give_journal_up() {
  return implementation_->in_turn<Status>(
      [](Implementation& own) { return own.give_journal_up_locked(); });
}

Status Mapping::leave_in_base() {
  return implementation_->in_turn<Status>(
      [](Implementation& own) { return own.leave_in_base_locked(); });
}

Status Mapping::leave_in_memory() {
  return implementation_->in_turn<Status>([](Implementation& own) -> Status {
    own.leave_in_memory_locked();
    return {};
  });
}

Status Mapping::take_over(Mapping& aside) {
  // In a group both have one lock.
  std::unique_lock lock_aside(aside.implementation_->mutex_, std::defer_lock);
  if (&aside.implementation_->mutex_ != &implementation_->mutex_) lock_aside.lock();
  return implementation_->in_order<Status>([&](Implementation& own) -> Status {
    own.take_over_locked(*aside.implementation_);
    return {};
  });
}

void Mapping::statistics(MappingStatistics& statistics) const {
  const Implementation& own = *implementation_;
  statistics = {};
  const std::lock_guard lock(own.mutex_);
  statistics.commits = own.commits_;
  statistics.bytes_logged = own.bytes_logged_;
  statistics.bytes_changed = own.bytes_changed_;
  statistics.dirty_pages = own.dirty_pages_;
  statistics.changed_pages = own.changed_pages_;
  statistics.pages_applied = own.image_.pages_applied();
  statistics.checkpoints = own.checkpointer_.checkpoints();
  statistics.stalls = own.stalls_;
  statistics.rollbacks = own.rollbacks_;
  statistics.pages_dropped = own.pages_dropped_;
  statistics.records_replayed = own.records_replayed_;
  statistics.journal_size_bytes = own.journal_->size_bytes();
  statistics.journal_used_bytes = own.journal_->used_bytes();
  const TrackerCounters scans = own.tracker_->counters();
  statistics.scans_flat = scans.scans_flat;
  statistics.scans_located = scans.scans_located;
  statistics.last_sequence = own.journal_->last_sequence();
  statistics.unmarked_bytes = own.unmarked_bytes_;
  statistics.tracker = own.tracker_->knows_lines()                       ? PAWL_TRACKER_STORE
                       : std::strcmp(own.tracker_->name(), "fault") == 0 ? PAWL_TRACKER_FAULT
                                                                         : PAWL_TRACKER_SCAN;
  statistics.medium = own.base_in_place_ != nullptr ? PAWL_MEDIUM_MEMORY : PAWL_MEDIUM_BLOCK;
  statistics.apply = own.options_.apply == ApplyChoice::eager ? PAWL_APPLY_EAGER : PAWL_APPLY_ASYNC;
  statistics.durability =
      own.log_->writes_behind() ? PAWL_DURABILITY_ON_FAIL : PAWL_DURABILITY_FLUSH;
  statistics.outstanding_bytes = own.batches_.queued_bytes();
  statistics.outstanding_bytes_max = own.batches_.written_bytes_max();
  own.log_->failures().describe(statistics);
}

bool Mapping::is_of_other_memory() const { return !implementation_->owner_.has_this_memory(); }

Status Mapping::in_own_process() const { return implementation_->in_own_process(); }

const Medium& Mapping::medium() const { return *implementation_->medium_; }
Medium& Mapping::medium() { return *implementation_->medium_; }

}  // namespace pawl
