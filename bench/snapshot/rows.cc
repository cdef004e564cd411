#include "snapshot/rows.h"

#include <algorithm>

namespace pawl::bench {
namespace {

template <class Row, class Matches>
const Row* find_in(const std::vector<Row>& rows, const Matches& matches) {
  const auto found = std::find_if(rows.begin(), rows.end(), matches);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const SnapshotRow* find(const std::vector<SnapshotRow>& rows, const std::string& workload,
                        const std::string& operation, const std::string& profile,
                        const std::string& system) {
  return find_in(rows, [&](const SnapshotRow& row) {
    return row.workload == workload && row.operation == operation && row.profile == profile &&
           row.system == system;
  });
}

const BlockRow* find(const std::vector<BlockRow>& rows, const std::string& system,
                     std::uint64_t mapping_bytes) {
  return find_in(rows, [&](const BlockRow& row) {
    return row.system == system && row.mapping_bytes == mapping_bytes;
  });
}

}  // namespace pawl::bench
