// Makes queued records durable, in order: the MS_ASYNC batches.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
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
  BatchWriter(Journal& journal, Durable durable, Failed failed);
  ~BatchWriter();  // abandons what is queued

  // Takes a finished record.  Waits while the queue is over kQueuedBytesMax.
  Status enqueue(const Place& place, RecordBuilder record);
  // Waits until the queue is empty and durable, or a write failed: which is final.
  Status wait();
  // True when nothing is queued or being written, and nothing has failed.
  bool idle() const;

 private:
  struct Batch {
    Place place;
    RecordBuilder record;
  };
  void run();

  Journal& journal_;
  const Durable durable_;
  const Failed failed_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> queue_;
  std::uint64_t queued_bytes_ = 0;
  bool writing_ = false;
  bool stop_ = false;
  Status failure_;
  std::thread thread_;
};

}  // namespace pawl::journal
