// What is done to the hash table, drawn beforehand, so that the same is done in each form and no
// drawing is measured.
#pragma once

#include <cstdint>
#include <vector>

namespace pawl::bench::wsp {

enum class OperationKind : std::uint32_t { find, insert, remove };

struct Operation {
  OperationKind kind;
  std::uint32_t key;
};

struct Plan {
  std::vector<std::uint32_t> inserted_first;
  std::vector<Operation> operations;
};

// Looks up keys that are there; of the updates every other inserts a key that is not there, and the
// others remove one that is: the number of entries stays, but for one.
Plan draw_plan(std::uint32_t entries, std::uint64_t operations, unsigned update_percent,
               std::uint64_t seed);

}  // namespace pawl::bench::wsp
