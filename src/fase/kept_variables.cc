#include "fase/kept_variables.h"

#include <algorithm>

namespace pawl::fase {
namespace {

std::uint64_t address_of(const pawl_fase_kept& kept) {
  return reinterpret_cast<std::uint64_t>(kept.address);
}

bool begins_before(const pawl_fase_kept& kept, std::uint64_t address) {
  return address_of(kept) < address;
}

}  // namespace

void KeptVariables::add(const pawl_fase_kept* begin, const pawl_fase_kept* end) {
  for (const auto* kept = begin; kept != end; ++kept) {
    const auto at =
        std::lower_bound(by_address_.begin(), by_address_.end(), address_of(*kept), begins_before);
    if (at == by_address_.end() || at->address != kept->address) {
      by_address_.insert(at, *kept);
    } else {
      at->size_bytes = std::max(at->size_bytes, kept->size_bytes);
    }
  }
}

const pawl_fase_kept* KeptVariables::find(const void* at, std::size_t count) const {
  if (count == 0) return nullptr;
  const auto first = reinterpret_cast<std::uint64_t>(at);
  // The last one that begins before the bytes end: variables do not overlap.
  const auto behind =
      std::lower_bound(by_address_.begin(), by_address_.end(), first + count, begins_before);
  if (behind == by_address_.begin()) return nullptr;
  const pawl_fase_kept& kept = *std::prev(behind);
  return address_of(kept) + kept.size_bytes > first ? &kept : nullptr;
}

}  // namespace pawl::fase
