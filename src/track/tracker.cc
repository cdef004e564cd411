#include "track/tracker.h"

namespace pawl {

Status Tracker::collect_lines(char* address, std::size_t length, std::vector<StoredLines>& stored) {
  PageRuns pages;
  const Status status = collect(address, length, pages);
  for (const PageRun& run : pages.runs()) {
    for (std::uint64_t page = run.first; page < run.end(); ++page)
      stored.push_back({page, kAllLines});
  }
  return status;
}

}  // namespace pawl
