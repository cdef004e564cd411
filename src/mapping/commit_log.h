// Where commits become durable, and from where they reach their files: the journal, the batches
// that wait for it, and the background.
//
// Threads: who appends to the journal holds mutex(); the rest any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "journal/batch_writer.h"
#include "journal/checkpointer.h"
#include "journal/journal.h"
#include "mapping/failures.h"
#include "mapping/options.h"
#include "medium/mutex.h"

namespace pawl {

class CommitLog {
 public:
  // With a budget commits may be written behind.
  CommitLog(std::unique_ptr<journal::Journal> journal, std::size_t apply_threshold_pages,
            std::unique_ptr<journal::FlushBudget> budget);

  // One call at a time on the mappings that have their commits here.
  Mutex& mutex() const { return mutex_; }
  journal::Journal& journal() { return *journal_; }
  journal::Checkpointer& checkpointer() { return checkpointer_; }
  journal::BatchWriter& batches() { return batches_; }
  Failures& failures() { return failures_; }
  const Failures& failures() const { return failures_; }

  // Commits may be flushed after they were acknowledged.
  bool writes_behind() const { return writes_behind_; }

  std::uint64_t durable_sequence() const {
    return durable_sequence_.load(std::memory_order_acquire);
  }
  // The record was flushed by who holds mutex().
  void set_durable(std::uint64_t sequence) {
    durable_sequence_.store(sequence, std::memory_order_release);
  }

 private:
  mutable Mutex mutex_;
  Failures failures_;  // before the threads that report to it
  const std::unique_ptr<journal::Journal> journal_;
  const bool writes_behind_;
  std::atomic<std::uint64_t> durable_sequence_;
  journal::Checkpointer checkpointer_;
  journal::BatchWriter batches_;
};

// The failure to make a journal, with what to do about it; `what` begins the sentence.
Status no_journal(const std::string& what, std::uint64_t journal_bytes, const Status& why);

// How much of the log may be outstanding, for the durability on-fail; null for the other.  The
// journal is empty.
Result<std::unique_ptr<journal::FlushBudget>> budget_of(Medium& medium, journal::Journal& journal,
                                                        const Options& options);

}  // namespace pawl
