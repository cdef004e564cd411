#include "near_stores.h"

#include <algorithm>

namespace pawl::compiler {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30;  // keeps sums far from overflowing

}  // namespace

std::optional<std::int64_t> constant_distance(llvm::Value* from, llvm::Value* to,
                                              llvm::ScalarEvolution& evolution) {
  if (from == to) return 0;
  if (from->getType() != to->getType() || !evolution.isSCEVable(from->getType())) {
    return std::nullopt;
  }
  const std::optional<llvm::APInt> distance =
      evolution.computeConstantDifference(evolution.getSCEV(to), evolution.getSCEV(from));
  if (!distance || distance->getSignificantBits() > 32) return std::nullopt;
  return distance->getSExtValue();
}

bool can_share_mark(const StoreSite& site) {
  return site.whole && !site.both_sides && site.length == nullptr && site.bytes <= kBytesMax &&
         site.pointer->getType()->isPointerTy() && !site.instruction->isTerminator();
}

NearStores::NearStores(const StoreSite& site)
    : lowest_(site), last_(site.instruction), end_(static_cast<std::int64_t>(site.bytes)) {}

bool NearStores::take(const StoreSite& site, llvm::ScalarEvolution& evolution) {
  if (!can_share_mark(lowest_) || !can_share_mark(site)) return false;
  const std::optional<std::int64_t> offset =
      constant_distance(lowest_.pointer, site.pointer, evolution);
  if (!offset) return false;
  const std::int64_t site_end = *offset + static_cast<std::int64_t>(site.bytes);
  const std::int64_t first = std::min<std::int64_t>(0, *offset);
  const std::int64_t end = std::max(end_, site_end);
  const std::int64_t gap = std::max(*offset - end_, -site_end);
  if (end - first > kSpanMax && gap >= kLineBytes) return false;
  if (*offset < 0) lowest_ = site;
  end_ = end - first;
  last_ = site.instruction;
  ++count_;
  return true;
}

}  // namespace pawl::compiler
