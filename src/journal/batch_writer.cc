#include "journal/batch_writer.h"

#include <vector>

#include "medium/quiet_thread.h"

namespace pawl::journal {

BatchWriter::BatchWriter(Journal& journal, Durable durable, Failed failed)
    : journal_(journal), durable_(std::move(durable)), failed_(std::move(failed)) {}

BatchWriter::~BatchWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status BatchWriter::enqueue(const Place& place, RecordBuilder record) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queued_bytes_ <= kQueuedBytesMax || !failure_.ok(); });
  if (!failure_.ok()) return failure_;
  if (!thread_.joinable()) {
    auto started = start_quiet_thread("pawl-journal", [this] { run(); });
    if (!started.ok()) return started.status();
    thread_ = std::move(started.value());
  }
  queue_.push_back({place, std::move(record)});
  queued_bytes_ += place.bytes;
  changed_.notify_all();
  return {};
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

void BatchWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty() || stop_; });
    if (stop_) return;
    // All that is queued shares one flush.
    std::deque<Batch> batches;
    batches.swap(queue_);
    writing_ = true;
    lock.unlock();
    Status status;
    for (const Batch& batch : batches) {
      status = journal_.write(batch.place, 0, batch.record.block());
      if (!status.ok()) break;
    }
    if (status.ok()) status = journal_.flush();
    if (status.ok())
      durable_(batches.back().place.sequence);
    else
      failed_(status);
    lock.lock();
    writing_ = false;
    for (const Batch& batch : batches) queued_bytes_ -= batch.place.bytes;
    if (!status.ok()) failure_ = status;
    changed_.notify_all();
    if (!status.ok()) return;
  }
}

}  // namespace pawl::journal
