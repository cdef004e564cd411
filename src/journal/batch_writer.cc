#include "journal/batch_writer.h"

#include <cerrno>
#include <chrono>
#include <new>
#include <vector>

#include "medium/quiet_thread.h"

namespace pawl::journal {

BatchWriter::BatchWriter(Journal& journal, std::unique_ptr<FlushBudget> budget, Durable durable,
                         Failed failed)
    : journal_(journal),
      budget_(std::move(budget)),
      durable_(std::move(durable)),
      failed_(std::move(failed)) {}

BatchWriter::~BatchWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool BatchWriter::has_thread() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return true;
  auto started = start_quiet_thread("pawl-journal", [this] { run(); });
  if (!started.ok()) return false;
  thread_ = std::move(started.value());
  return true;
}

Status BatchWriter::enqueue(const Place& place, RecordBuilder record) {
  std::unique_lock lock(mutex_);
  return enqueue(lock, {place, std::move(record)});
}

Status BatchWriter::enqueue_written(const Place& place) {
  std::unique_lock lock(mutex_);
  // What was written before others are would be lost with them.
  PAWL_ASSERT(budget_ != nullptr && unwritten_ == 0);
  return enqueue(lock, {place, std::nullopt});
}

Status BatchWriter::enqueue(std::unique_lock<std::mutex>& lock, Batch batch) {
  changed_.wait(lock, [this] { return queued_bytes_ <= kQueuedBytesMax || !failure_.ok(); });
  if (!failure_.ok()) return failure_;
  PAWL_ASSERT(thread_.joinable());
  const std::uint64_t bytes = batch.place.bytes;
  const bool is_unwritten = batch.record.has_value();
  queue_.push_back(std::move(batch));
  queued_bytes_ += bytes;
  if (is_unwritten) ++unwritten_;
  changed_.notify_all();
  return {};
}

Result<bool> BatchWriter::wait_for_room(std::uint64_t record_bytes) {
  PAWL_ASSERT(budget_ != nullptr);
  std::unique_lock lock(mutex_);
  const auto has_room = [&] {
    return unwritten_ == 0 && queued_bytes_ + record_bytes <= budget_->bytes_max();
  };
  // The budget may shrink meanwhile.
  changed_.wait(lock, [&] { return has_room() || queued_bytes_ == 0 || !failure_.ok(); });
  if (!failure_.ok()) return failure_;
  return has_room();
}

std::uint64_t BatchWriter::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return queued_bytes_;
}

Status BatchWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return (queue_.empty() && !writing_) || !failure_.ok(); });
  return failure_;
}

bool BatchWriter::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !writing_ && failure_.ok();
}

Status BatchWriter::write_and_flush(const std::deque<Batch>& batches) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t bytes = 0;
  for (const Batch& batch : batches) {
    bytes += batch.place.bytes;
    if (batch.record.has_value()) PAWL_TRY(journal_.write(batch.place, 0, batch.record->block()));
  }
  PAWL_TRY(journal_.flush());
  if (budget_ != nullptr) budget_->note(bytes, std::chrono::steady_clock::now() - begin);
  return {};
}

Status BatchWriter::try_to_write_and_flush(const std::deque<Batch>& batches) noexcept {
  try {
    return write_and_flush(batches);
  } catch (const std::bad_alloc&) {
    return Status::failure(EIO, "out of memory");  // so short that it takes none
  }
}

// Takes no memory: nobody is there to catch what is thrown.
void BatchWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty() || stop_; });
    if (stop_) return;
    // All that is queued shares one flush.
    in_hand_.swap(queue_);
    writing_ = true;
    lock.unlock();
    Status status = try_to_write_and_flush(in_hand_);
    const bool has_failed = !status.ok();
    if (!has_failed)
      durable_(in_hand_.back().place.sequence);
    else
      failed_(status);
    lock.lock();
    writing_ = false;
    for (const Batch& batch : in_hand_) {
      queued_bytes_ -= batch.place.bytes;
      if (batch.record.has_value()) --unwritten_;
    }
    in_hand_.clear();
    if (has_failed) failure_ = std::move(status);
    changed_.notify_all();
    if (has_failed) return;
  }
}

}  // namespace pawl::journal
