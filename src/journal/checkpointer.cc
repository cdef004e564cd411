#include "journal/checkpointer.h"

#include <algorithm>
#include <new>

#include "medium/law.h"
#include "medium/quiet_thread.h"

namespace pawl::journal {

Checkpointer::Checkpointer(Journal& journal, std::size_t threshold_pages, Failed failed)
    : journal_(journal), threshold_pages_(threshold_pages), failed_(std::move(failed)) {}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(thread_mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::add(MediumFile& base, CommittedImage& image) {
  const std::lock_guard checkpoint_lock(checkpoint_mutex_);
  const std::lock_guard apply_lock(apply_mutex_);
  const std::lock_guard lock(files_mutex_);
  files_.push_back({&base, &image});
}

void Checkpointer::remove(const CommittedImage& image, Left left) {
  const std::lock_guard checkpoint_lock(checkpoint_mutex_);
  const std::lock_guard apply_lock(apply_mutex_);
  const std::lock_guard lock(files_mutex_);
  std::erase_if(files_, [&](const File& file) { return file.image == &image; });
  keeps_all_records_ = keeps_all_records_ || left == Left::as_in_a_crash;
}

void Checkpointer::durable(std::uint64_t sequence) {
  const std::lock_guard lock(files_mutex_);
  for (const File& file : files_) file.image->durable(sequence);
}

bool Checkpointer::much_to_apply() const {
  const std::lock_guard lock(files_mutex_);
  std::size_t waiting_pages = 0;
  for (const File& file : files_) waiting_pages += file.image->waiting_pages();
  return waiting_pages > threshold_pages_;
}

void Checkpointer::nudge() {
  if (!much_to_apply() && !much_in_journal() && !journal_.wants_growth()) return;
  const std::lock_guard lock(thread_mutex_);
  if (broken_ || stop_) return;
  nudged_ = true;
  if (!thread_.joinable()) {
    auto started = start_quiet_thread("pawl-apply", [this] { run(); });
    // Without a background there is still the commit that finds the journal full.
    if (!started.ok()) return;
    thread_ = std::move(started.value());
  }
  wake_.notify_one();
}

void Checkpointer::run() {
  std::unique_lock lock(thread_mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return nudged_ || stop_; });
    if (stop_) return;
    nudged_ = false;
    lock.unlock();
    Status status;
    try {
      // First, for it makes a checkpoint needless; whoever finds the ring full meanwhile makes his
      // own.
      status = grow_journal();
      if (status.ok() && much_in_journal())
        status = checkpoint_now();
      else if (status.ok() && much_to_apply())
        status = apply_now();
    } catch (const std::bad_alloc&) {
      status = Status::no_memory("no memory for the background");
    }
    if (!status.ok()) failed_(status);
    lock.lock();
    // A full disk may be mended: the commit that next needs the space tries again itself.
    broken_ = broken_ || !status.ok();
  }
}

Status Checkpointer::grow_journal() {
  const auto is_over = [this] {
    const std::lock_guard lock(thread_mutex_);
    return stop_;
  };
  for (bool is_more = journal_.wants_growth(); is_more && !is_over();) {
    auto grown = journal_.grow();
    if (!grown.ok()) return grown.status();
    is_more = grown.value();
  }
  return {};
}

Status Checkpointer::apply_now() {
  const std::lock_guard lock(apply_mutex_);
  for (const File& file : files_) PAWL_TRY(file.image->apply());
  return {};
}

Status Checkpointer::apply_directly(const std::function<Status()>& copy) {
  const std::lock_guard checkpoint_lock(checkpoint_mutex_);
  const std::lock_guard lock(apply_mutex_);
  return copy();
}

Status Checkpointer::checkpoint_now(Drop drop) {
  const std::lock_guard lock(checkpoint_mutex_);
  PAWL_TRY(flush_failure_);
  PAWL_TRY(apply_now());
  if (keeps_all_records_) return {};
  std::uint64_t applied = journal_.last_sequence();
  for (const File& file : files_) applied = std::min(applied, file.image->applied_sequence());
  for (const File& file : files_) {
    if (!is_broken(Law::flush_before_release)) flush_failure_ = file.base->flush();
    if (!flush_failure_.ok() && is_broken(Law::failed_flush_is_final))
      flush_failure_ = file.base->flush();
    PAWL_TRY(flush_failure_);
  }
  PAWL_TRY(journal_.release(applied, drop));
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard thread_lock(thread_mutex_);
  broken_ = false;
  return {};
}

}  // namespace pawl::journal
