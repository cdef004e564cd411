// File pages that were taken from the tracker, with their lines that may have changed.
#pragma once

#include <algorithm>
#include <vector>

#include "track/tracker.h"

namespace pawl {

// In ascending order, each page once; join() makes it so.
using TakenPages = std::vector<StoredLines>;

inline void join(TakenPages& pages) {
  // Often they are so already.
  const auto is_behind = [](const StoredLines& a, const StoredLines& b) {
    return a.page >= b.page;
  };
  if (std::adjacent_find(pages.begin(), pages.end(), is_behind) == pages.end()) return;
  std::sort(pages.begin(), pages.end(),
            [](const StoredLines& a, const StoredLines& b) { return a.page < b.page; });
  std::size_t count = 0;
  for (const StoredLines& each : pages) {
    if (count > 0 && pages[count - 1].page == each.page) {
      pages[count - 1].lines |= each.lines;
    } else {
      pages[count++] = each;
    }
  }
  pages.resize(count);
}

// Calls visit(PageRun) for each run of neighbours.  Stops at, and returns, the first failure.
template <class Visit>
Status for_runs(const TakenPages& pages, Visit visit) {
  for (std::size_t from = 0; from < pages.size();) {
    std::size_t to = from + 1;
    while (to < pages.size() && pages[to].page == pages[to - 1].page + 1) ++to;
    PAWL_TRY(visit(PageRun{pages[from].page, to - from}));
    from = to;
  }
  return {};
}

}  // namespace pawl
