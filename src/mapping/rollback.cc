// Back to the committed image.

#include <algorithm>
#include <new>

#include "mapping/implementation.h"

namespace pawl {

Status Mapping::Implementation::roll_back_locked(std::uint64_t first_page, std::uint64_t end_page,
                                                 bool whole) {
  // Another file that has the base's number by now would be shown.
  PAWL_TRY(medium_->base().check_open());
  PAWL_TRY(apply_all());
  PAWL_ASSERT(image_.waiting_pages() == 0);
  rollbacks_ += 1;
  TakenPages taken;
  PAWL_TRY(take_pages(first_page, end_page, taken));
  Status status;
  try {
    status = whole ? roll_back_whole(taken) : roll_back_pages(taken);
  } catch (const std::bad_alloc&) {
    status = Status::no_memory("no memory for the rollback; free some and call again");
  }
  // What was not rolled back is still to be committed.
  if (!status.ok()) keep_pages(taken);
  return status;
}

Status Mapping::Implementation::roll_back_whole(const TakenPages& taken) {
  const std::uint64_t uncut_end = view_.mapped() ? view_.file_end_page() : 0;
  // The kernel may refuse that, so it comes first.
  if (view_.mapped()) PAWL_TRY(view_.set_size(image_.size()));
  const bool was_cut = lowest_size_ < image_.size();
  outside_.clear();
  forget_pages();
  size_ = lowest_size_ = image_.size();
  if (!view_.mapped()) return {};
  // What a cut took away is in memory as zeros, and nobody stored those.
  const std::uint64_t end = view_.accessible_end_page();
  if (was_cut && uncut_end < end) be_unsure_of(uncut_end, end);
  TakenPages left = taken;
  std::erase_if(left, [&](const StoredLines& stored) { return !view_.accessible(stored.page); });
  if (was_cut) {
    for (std::uint64_t page = uncut_end; page < end; ++page) left.push_back({page, kAllLines});
    join(left);
  }
  const std::uint64_t file_end = view_.file_end_page();
  if (file_end > view_.first_page() &&
      view_.show_base_pages(view_.first_page(), file_end - view_.first_page())) {
    std::erase_if(left, [&](const StoredLines& stored) { return stored.page < file_end; });
    if (file_end == end) private_pages_ = 0;
  }
  PAWL_TRY(roll_back_pages(left));
  forget_pages();
  return {};
}

Status Mapping::Implementation::roll_back_pages(const TakenPages& taken) {
  return for_runs(taken, [&](const PageRun& run) -> Status {
    const std::uint64_t file_end = std::clamp(view_.file_end_page(), run.first, run.end());
    // Pages that are locked in memory cannot be dropped; they are copied like those of growth.
    const bool dropped =
        file_end > run.first && view_.show_base_pages(run.first, file_end - run.first);
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
