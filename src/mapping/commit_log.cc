#include "mapping/commit_log.h"

#include "mapping/power.h"

namespace pawl {

CommitLog::CommitLog(std::unique_ptr<journal::Journal> journal, std::size_t apply_threshold_pages,
                     std::unique_ptr<journal::FlushBudget> budget)
    : journal_(std::move(journal)),
      writes_behind_(budget != nullptr),
      durable_sequence_(journal_->last_sequence()),
      checkpointer_(*journal_, apply_threshold_pages,
                    [this](const Status& status) { failures_.take_note(status); }),
      batches_(
          *journal_, std::move(budget),
          [this](std::uint64_t sequence) {
            set_durable(sequence);
            checkpointer_.durable(sequence);
            checkpointer_.nudge();
          },
          [this](const Status& status) { failures_.note_final(status); }) {}

Result<std::unique_ptr<journal::FlushBudget>> budget_of(Medium& medium, journal::Journal& journal,
                                                        const Options& options) {
  const bool is_memory = medium.base().in_place() != nullptr;
  if (options.durability == DurabilityChoice::flush || is_memory)
    return std::unique_ptr<journal::FlushBudget>();
  auto budget = std::make_unique<journal::FlushBudget>(
      std::chrono::milliseconds(options.hold_up_ms), journal.capacity_bytes());
  PAWL_TRY(journal.prepare_to_write_behind(*budget));
  watch_power_signal();
  return budget;
}

}  // namespace pawl
