#include "mapping/commit_log.h"

namespace pawl {

CommitLog::CommitLog(std::unique_ptr<journal::Journal> journal, std::size_t apply_threshold_pages)
    : journal_(std::move(journal)),
      durable_sequence_(journal_->last_sequence()),
      checkpointer_(*journal_, apply_threshold_pages,
                    [this](const Status& status) {
                      [[maybe_unused]] const Status noted = failures_.note(status);
                    }),
      batches_(
          *journal_,
          [this](std::uint64_t sequence) {
            set_durable(sequence);
            checkpointer_.durable(sequence);
            checkpointer_.nudge();
          },
          [this](const Status& status) { failures_.note_final(status); }) {}

}  // namespace pawl
