// Stores whose distance is known to the compiler, collected into one range.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "llvm/Analysis/ScalarEvolution.h"
#include "store_sites.h"

namespace pawl::compiler {

class NearStores {
 public:
  // A range with gaps is marked as one where it is no longer than this; a longer one only where no
  // gap can hold a line that was not stored to.
  static constexpr std::int64_t kSpanMax = 128;
  static constexpr std::int64_t kLineBytes = 64;

  explicit NearStores(const StoreSite& site);

  // Takes the store if it is near enough, and its size and distance are known.
  bool take(const StoreSite& site, llvm::ScalarEvolution& evolution);

  const StoreSite& lowest() const { return lowest_; }
  // The last that was taken.
  llvm::Instruction* last() const { return last_; }
  std::int64_t bytes() const { return end_; }
  unsigned count() const { return count_; }

 private:
  StoreSite lowest_;
  llvm::Instruction* last_;
  std::int64_t end_;  // of the range, from the lowest
  unsigned count_ = 1;
};

// The distance in bytes from one pointer to another, where it is a constant.
std::optional<std::int64_t> constant_distance(llvm::Value* from, llvm::Value* to,
                                              llvm::ScalarEvolution& evolution);

// True of what can share a mark with others: a plain store of a size that the compiler knows.
bool can_share_mark(const StoreSite& site);

}  // namespace pawl::compiler
