#include "wsp/process/origins.h"

#include <algorithm>
#include <iterator>

namespace pawl::wsp {

namespace {

Origin cut(Origin origin, std::uint64_t start, std::uint64_t end) {
  const std::uint64_t from = std::max(origin.start, start);
  const std::uint64_t to = std::min(origin.end(), end);
  origin.offset = origin.offset_of(from);
  origin.start = from;
  origin.bytes = to - from;
  return origin;
}

bool goes_on_in(const Origin& origin, const Origin& next) {
  if (origin.end() != next.start || origin.is_file != next.is_file) return false;
  return !origin.is_file || (origin.inode == next.inode && origin.name == next.name &&
                             origin.offset_of(origin.end()) == next.offset);
}

}  // namespace

void Origins::set(const Origin& origin) {
  erase(origin.start, origin.bytes);
  if (origin.bytes == 0) return;
  // With its neighbours it is one, as the kernel's mappings are: page by page there would soon be
  // too many.
  Origin whole = origin;
  const auto behind = origins_.find(whole.end());
  if (behind != origins_.end() && goes_on_in(whole, behind->second)) {
    whole.bytes += behind->second.bytes;
    origins_.erase(behind);
  }
  const auto at = origins_.lower_bound(whole.start);
  if (at != origins_.begin()) {
    Origin& before = std::prev(at)->second;
    if (goes_on_in(before, whole)) {
      before.bytes += whole.bytes;
      return;
    }
  }
  origins_[whole.start] = whole;
}

void Origins::erase(std::uint64_t start, std::uint64_t bytes) {
  const std::uint64_t end = start + bytes;
  auto found = origins_.upper_bound(start);
  if (found != origins_.begin()) --found;
  while (found != origins_.end() && found->second.start < end) {
    const Origin origin = found->second;
    if (origin.end() <= start) {
      ++found;
      continue;
    }
    found = origins_.erase(found);
    if (origin.start < start) origins_[origin.start] = cut(origin, origin.start, start);
    if (origin.end() > end) origins_[end] = cut(origin, end, origin.end());
  }
}

std::vector<Origin> Origins::within(std::uint64_t start, std::uint64_t bytes) const {
  std::vector<Origin> all;
  auto found = origins_.upper_bound(start);
  if (found != origins_.begin()) --found;
  for (; found != origins_.end() && found->second.start < start + bytes; ++found) {
    if (found->second.end() > start) all.push_back(cut(found->second, start, start + bytes));
  }
  return all;
}

void Origins::move(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  const std::vector<Origin> moved = within(from, bytes);
  erase(from, bytes);
  erase(to, bytes);
  for (Origin origin : moved) {
    origin.start = to + (origin.start - from);
    set(origin);
  }
}

}  // namespace pawl::wsp
