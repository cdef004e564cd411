// The pages between the tracker and a commit: none is forgotten, whatever fails.

#include <algorithm>
#include <new>

#include "mapping/implementation.h"
#include "medium/cache_lines.h"

namespace pawl {

Status Mapping::Implementation::take_pages(std::uint64_t first_page, std::uint64_t end_page,
                                           TakenPages& taken) {
  PAWL_ASSERT(taken.empty());
  if (!view_.mapped()) return {};
  first_page = std::max(first_page, view_.first_page());
  const std::uint64_t end = std::min(end_page, view_.accessible_end_page());
  if (first_page >= end) return {};
  // Not where a commit takes no system call.
  if (base_in_place_ == nullptr) PAWL_TRY(view_.check_mapped(first_page, end));
  try {
    return take_known_pages(first_page, end, taken);
  } catch (const std::bad_alloc&) {
    // What the tracker gave may lie outside of the range, too.
    be_unsure_of(view_.first_page(), view_.accessible_end_page());
    taken.clear();
    return Status::no_memory("no memory to look for changed pages; free some and call again");
  }
}

// What the tracker knows of the range joins what earlier calls left.
Status Mapping::Implementation::take_known_pages(std::uint64_t first_page, std::uint64_t end,
                                                 TakenPages& taken) {
  if (unsure_first_ < unsure_end_) take_unsure_pages();
  Status status = tracker_->collect_lines(reinterpret_cast<char*>(view_.bytes(first_page)),
                                          (end - first_page) * kPageBytes, taken);
  const std::uint64_t window_start = reinterpret_cast<std::uintptr_t>(view_.address()) / kPageBytes;
  const std::uint64_t window_pages = view_.length() / kPageBytes;
  const auto is_inside = [&](const StoredLines& stored) {
    return stored.page >= first_page && stored.page < end;
  };
  bool all_are_inside = true;
  for (StoredLines& stored : taken) {
    PAWL_ASSERT(stored.page - window_start < window_pages);
    stored.page += view_.first_page() - window_start;
    all_are_inside = all_are_inside && is_inside(stored);
  }
  if (!all_are_inside) {
    const auto outside = std::partition(taken.begin(), taken.end(), is_inside);
    for (auto stored = outside; stored != taken.end(); ++stored) pending_.add(stored->page);
    taken.erase(outside, taken.end());
  }
  if (!status.ok()) {
    keep_pages(taken);
    taken.clear();
    return status;
  }
  if (!pending_.empty()) {
    PageRuns kept = pending_.take(first_page, end);
    for (const PageRun& run : kept.runs()) {
      for (std::uint64_t page = run.first; page < run.end(); ++page)
        taken.push_back({page, kAllLines});
    }
  }
  if (taken.size() > 1) join(taken);
  return {};
}

// They count as stored to, in so far as they are still there.
void Mapping::Implementation::take_unsure_pages() {
  const std::uint64_t first = std::max(unsure_first_, view_.first_page());
  const std::uint64_t end = std::min(unsure_end_, view_.accessible_end_page());
  if (first < end) pending_.add(first, end - first);
  unsure_first_ = ~std::uint64_t{0};
  unsure_end_ = 0;
}

void Mapping::Implementation::keep_pages(const TakenPages& taken) noexcept {
  if (taken.empty()) return;
  if (tracker_->knows_lines()) {
    for (const StoredLines& stored : taken) note_lines(stored);
    return;
  }
  try {
    for (const StoredLines& stored : taken) pending_.add(stored.page);
  } catch (const std::bad_alloc&) {
    for (const StoredLines& stored : taken) be_unsure_of(stored.page, stored.page + 1);
  }
}

void Mapping::Implementation::note_lines(const StoredLines& stored) const noexcept {
  if (!view_.accessible(stored.page)) return;
  const char* const start = reinterpret_cast<const char*>(view_.bytes(stored.page));
  [[maybe_unused]] const Status noted =
      for_lines(stored.lines, kPageBytes, [&](std::size_t offset, std::size_t length) {
        tracker_->note_store(start + offset, length);
        return Status{};
      });
}

void Mapping::Implementation::be_unsure_of(std::uint64_t first_page,
                                           std::uint64_t end_page) noexcept {
  unsure_first_ = std::min(unsure_first_, first_page);
  unsure_end_ = std::max(unsure_end_, end_page);
}

void Mapping::Implementation::forget_pages() noexcept {
  pending_.clear();
  unsure_first_ = ~std::uint64_t{0};
  unsure_end_ = 0;
}

}  // namespace pawl
