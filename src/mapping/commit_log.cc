#include "mapping/commit_log.h"

#include "mapping/options.h"
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

Status no_journal(const std::string& what, std::uint64_t journal_bytes, const Status& why) {
  const std::string smaller =
      journal_bytes > kJournalSizeMin
          ? " or ask for a smaller journal (PAWL_JOURNAL_SIZE, at least 64K)"
          : "";
  std::string text = what + ": " + why.text();
  if (is_want_of_space(why.error_number()))
    text +=
        (why.advises_to_free_space() ? "" : "; free some space") +
        (smaller.empty() ? "" : "," + smaller) +
        ". To bring a file that a crash left to its last commit, which takes no new journal, use "
        "'pawl recover FILE'";
  if (why.error_number() == EFBIG)
    text += "; raise the limit (ulimit -f)" + (smaller.empty() ? "" : "," + smaller);
  const bool is_full = is_want_of_space(why.error_number());
  return Status::failure(why.error_number(), is_full ? PAWL_ERROR_NO_SPACE_FOR_JOURNAL : why.code(),
                         std::move(text));
}

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
