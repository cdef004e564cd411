// Back to the committed image.

#include <algorithm>
#include <new>

#include "mapping/implementation.h"

namespace pawl {

Status Mapping::Implementation::show_base() {
  try {
    return view_.show_base(size_);
  } catch (const std::bad_alloc&) {
    return Status::no_memory("no memory to map the file anew");
  }
}

Status Mapping::Implementation::roll_back_locked(std::uint64_t first_page, std::uint64_t end_page,
                                                 bool whole) {
  // Another file that has the base's number by now would be shown.
  PAWL_TRY(medium_->base().check_open());
  PAWL_TRY(apply_all());
  PAWL_ASSERT(image_.waiting_pages() == 0);
  rollbacks_ += 1;
  TakenPages taken;
  PAWL_TRY(take_pages(first_page, end_page, taken));
  if (whole) {
    outside_.clear();
    forget_pages();
    size_ = lowest_size_ = image_.size();
    private_pages_ = 0;
    if (!view_.mapped()) return {};
    const Status shown = show_base();
    if (!shown.ok()) note_final(shown);  // part of the view may be untracked now
    return shown;
  }
  Status status;
  try {
    status = roll_back_pages(taken);
  } catch (const std::bad_alloc&) {
    status = Status::no_memory("no memory for the rollback; free some and call again");
  }
  // What was not rolled back is still to be committed.
  if (!status.ok()) keep_pages(taken);
  return status;
}

Status Mapping::Implementation::roll_back_pages(const TakenPages& taken) {
  return for_runs(taken, [&](const PageRun& run) -> Status {
    const std::uint64_t file_end = std::clamp(view_.file_end_page(), run.first, run.end());
    // Pages that are locked in memory cannot be dropped; they are copied like those of growth.
    const bool dropped =
        file_end > run.first && view_.show_base_pages(run.first, file_end - run.first).ok();
    for (std::uint64_t page = run.first; page < run.end(); ++page) {
      const bool cut = lowest_size_ < (page + 1) * kPageBytes && lowest_size_ < image_.size();
      if (page < file_end && dropped && !cut) continue;
      auto committed = page_before(page);
      if (!committed.ok()) return committed.status();
      PAWL_TRY(store_in_view(page * kPageBytes, committed.value()->bytes));
    }
    return {};
  });
}

}  // namespace pawl
