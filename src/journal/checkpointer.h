// Moves durable records' bytes into the base, and the base's bytes to the medium, so that records
// can be dropped; in the background, or at once when asked.  In the background the journal grows,
// too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "journal/committed_image.h"
#include "journal/journal.h"

namespace pawl::journal {

class Checkpointer {
 public:
  // `threshold_pages`: committed pages that may wait before the background starts to apply them.
  // `failed` is told of what went wrong in the background; it is called in that thread.
  using Failed = std::function<void(const Status&)>;
  Checkpointer(Journal& journal, std::size_t threshold_pages, Failed failed);
  ~Checkpointer();  // stops the background thread; applies nothing

  // The records are about this file from now on.  Not while a record is written.  This and the next
  // wait for an apply and a checkpoint that are under way.
  void add(MediumFile& base, CommittedImage& image);
  // They are not any more: the file has them all and was let go of; or it went as in a crash, and
  // from now on no record is dropped, so that the next open finds them.
  enum class Left { after_all, as_in_a_crash };
  void remove(const CommittedImage& image, Left left);

  // Tells every image that records up to here are durable.
  void durable(std::uint64_t sequence);

  // There may be work: wakes the background if there is enough of it.  Does not block.
  void nudge();

  // Everything durable is in the base (not flushed) on success.
  Status apply_now();
  // Everything durable is in the base and flushed, and its records are dropped.
  // A failed flush is final: it is not tried again (law 8).
  Status checkpoint_now(Drop drop = Drop::unless_held);
  // So much of the journal is used that nudge() would have that done.
  bool is_due() const { return much_in_journal(); }
  // Runs `copy` while nothing else applies or checkpoints: the direct way into the base.
  Status apply_directly(const std::function<Status()>& copy);

  std::uint64_t checkpoints() const { return checkpoints_.load(std::memory_order_relaxed); }

 private:
  struct File {
    MediumFile* base;
    CommittedImage* image;
  };
  bool much_to_apply() const;
  Status grow_journal();
  bool much_in_journal() const { return journal_.used_bytes() * 2 > journal_.capacity_bytes(); }
  void run();

  Journal& journal_;
  const std::size_t threshold_pages_;
  const Failed failed_;
  std::atomic<std::uint64_t> checkpoints_{0};

  std::mutex checkpoint_mutex_;  // one at a time; taken before apply_mutex_
  Status flush_failure_;         // guarded by checkpoint_mutex_
  std::mutex apply_mutex_;       // one at a time
  // Changed with all three held; this one is taken last, and held for no more than a look.
  mutable std::mutex files_mutex_;
  std::vector<File> files_;
  bool keeps_all_records_ = false;

  std::mutex thread_mutex_;
  std::condition_variable wake_;
  bool nudged_ = false;
  bool stop_ = false;
  bool broken_ = false;  // a background failure stops background work; the next caller meets it
  std::thread thread_;   // started by the first nudge that finds work
};

}  // namespace pawl::journal
