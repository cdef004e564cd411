#include "msync/statistics.h"

#include <algorithm>

#include "common/percentile.h"

namespace pawl::bench {
void Tally::add(const TurnResult& turn) {
  samples_.insert(samples_.end(), turn.samples.begin(), turn.samples.end());
  logged_.commits += turn.logged.commits;
  logged_.bytes += turn.logged.bytes;
}

void Tally::summarize(Row& row) const {
  std::vector<double> commit;
  std::vector<double> store;
  std::vector<double> both;
  for (const Sample& sample : samples_) {
    commit.push_back(sample.commit_us);
    store.push_back(sample.store_us);
    both.push_back(sample.store_us + sample.commit_us);
  }
  row.samples = samples_.size();
  row.median_us = percentile(commit, 0.5);
  row.p99_us = percentile(commit, 0.99);
  row.store_median_us = percentile(store, 0.5);
  row.both_median_us = percentile(both, 0.5);
  row.journal_bytes = logged_.commits > 0 ? logged_.bytes / logged_.commits : 0;
}

const Row* find(const Rows& rows, const std::string& case_name, const std::string& system,
                std::uint32_t pages, std::uint32_t bytes_per_page, const std::string& load) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.case_name == case_name && row.system == system && row.pages == pages &&
           row.bytes_per_page == bytes_per_page && row.load == load;
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace pawl::bench
