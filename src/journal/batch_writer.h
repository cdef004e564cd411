// Makes records durable, in order, behind those who commit: the MS_ASYNC batches, and what was
// written already and is only to be flushed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "journal/journal.h"
#include "journal/record_builder.h"

namespace pawl::journal {

inline constexpr std::uint64_t kQueuedBytesMax = std::uint64_t{64} << 20;

class BatchWriter {
 public:
  // `durable` is told of each sequence number that became durable, with all before it, in the
  // writer's thread.
  using Durable = std::function<void(std::uint64_t sequence)>;
  // `failed` is told, there too, of the failure that ended it.
  using Failed = std::function<void(const Status&)>;
  // `budget` bounds what may be written and not flushed, and is told how long flushes take; null:
  // nothing is written behind.
  BatchWriter(Journal& journal, std::unique_ptr<FlushBudget> budget, Durable durable,
              Failed failed);
  ~BatchWriter();  // abandons what is queued

  // Whether there is a thread that makes records durable: starts it.  False: the system has none to
  // give; what is to be durable is written by who commits.
  bool has_thread();
  // Takes a finished record, once there is a thread.  Waits while the queue is over
  // kQueuedBytesMax.
  Status enqueue(const Place& place, RecordBuilder record);
  // Waits until a record of so many bytes can be written now and flushed later.  False: that would
  // be too much even alone.  For whoever calls these, and enqueue(), one call at a time.
  Result<bool> wait_for_room(std::uint64_t record_bytes);
  // Takes a record that was written to the journal after wait_for_room().
  Status enqueue_written(const Place& place);
  // Bytes of records that are taken and not durable, and how many of them may have been written.
  std::uint64_t queued_bytes() const;
  std::uint64_t written_bytes_max() const { return budget_ == nullptr ? 0 : budget_->bytes_max(); }
  // Waits until the queue is empty and durable, or a write failed: which is final.
  Status wait();
  // True when nothing is queued or being written, and nothing has failed.
  bool idle() const;

 private:
  struct Batch {
    Place place;
    std::optional<RecordBuilder> record;  // what is to be written; nothing: it was
  };
  Status enqueue(std::unique_lock<std::mutex>& lock, Batch batch);
  Status write_and_flush(const std::deque<Batch>& batches);
  // The same where no exception may leave: memory that runs out is a failure like any other.
  Status try_to_write_and_flush(const std::deque<Batch>& batches) noexcept;
  void run();

  Journal& journal_;
  const std::unique_ptr<FlushBudget> budget_;  // may be null
  const Durable durable_;
  const Failed failed_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> queue_;
  std::deque<Batch> in_hand_;  // of run(), where a new one would take memory
  std::uint64_t queued_bytes_ = 0;
  std::size_t unwritten_ = 0;  // of those that are queued, or being written
  bool writing_ = false;
  bool stop_ = false;
  Status failure_;
  std::thread thread_;
};

}  // namespace pawl::journal
