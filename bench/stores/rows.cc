#include "stores/rows.h"

#include <algorithm>

#include "common/percentile.h"

namespace pawl::bench {

void Tally::add(const TurnResult& turn, std::uint32_t batch) {
  for (const double time_us : turn.times_us) times_us_.push_back(time_us / batch);
  operations_ += static_cast<double>(turn.times_us.size() * batch);
  costs_.settle_us += turn.costs.settle_us;
  costs_.processor_us += turn.costs.processor_us;
  costs_.logged_bytes += turn.costs.logged_bytes;
  costs_.written_bytes += turn.costs.written_bytes;
  costs_.checkpoints += turn.costs.checkpoints;
}

void Tally::summarize(Row& row) const {
  if (times_us_.empty()) return;
  std::vector<double> times_us = times_us_;
  row.samples = times_us.size();
  row.median_us = percentile(times_us, 0.5);
  row.p99_us = percentile(times_us, 0.99);
  row.mean_us = mean(times_us);
  row.settle_us = costs_.settle_us / operations_;
  row.processor_us = costs_.processor_us / operations_;
  row.logged_bytes = static_cast<double>(costs_.logged_bytes) / operations_;
  row.written_bytes = static_cast<double>(costs_.written_bytes) / operations_;
  row.checkpoints = costs_.checkpoints;
}

const Row* find(const Rows& rows, const std::string& case_name, const std::string& system,
                Operation operation) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.case_name == case_name && row.system == system && row.operation == operation;
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace pawl::bench
