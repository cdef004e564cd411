#include "cli/watch/left_out.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string_view>

#include "medium/medium.h"
#include "tracing/process_memory.h"

namespace pawl::cli::watch {

namespace {

constexpr std::size_t kLooksMax = 256;    // in one process
constexpr std::size_t kPagesMax = 1024;   // that are looked at each time: the first ones
constexpr std::size_t kRangesMax = 1024;  // a program with more has no pages that it leaves out

}  // namespace

void LeftOut::range_synchronised(pid_t thread, Range range, const std::vector<Range>& mapped) {
  const bool has_all = std::ranges::all_of(
      mapped, [&](const Range& one) { return range.begin <= one.begin && one.end <= range.end; });
  if (has_all) return all_synchronised();
  if (looks_ == kLooksMax || synchronised_.size() == kRangesMax) return;
  add(range);
  if (++until_look_ < kSynchronisationsToALook) return;
  until_look_ = 0;
  looks_ += 1;
  look(thread, mapped);
}

void LeftOut::all_synchronised() { pages_.clear(); }

void LeftOut::moved() {
  pages_.clear();
  synchronised_.clear();
}

void LeftOut::add(Range range) {
  auto next = synchronised_.upper_bound(range.begin);
  if (next != synchronised_.begin() && std::prev(next)->second >= range.begin) --next;
  while (next != synchronised_.end() && next->first <= range.end) {
    range.begin = std::min(range.begin, next->first);
    range.end = std::max(range.end, next->second);
    next = synchronised_.erase(next);
  }
  synchronised_[range.begin] = range.end;
}

bool LeftOut::is_outside(std::uint64_t page) const {
  const auto next = synchronised_.upper_bound(page);
  return next == synchronised_.begin() || std::prev(next)->second <= page;
}

void LeftOut::look(pid_t thread, const std::vector<Range>& mapped) {
  std::erase_if(pages_, [&](const auto& entry) { return !is_outside(entry.first); });
  std::array<char, kPageBytes> bytes{};
  std::size_t looked_at = 0;
  std::uint64_t found = 0;
  for (const Range& one : mapped) {
    for (std::uint64_t page = one.begin; page < one.end && looked_at < kPagesMax;) {
      if (!is_outside(page)) {
        page = std::prev(synchronised_.upper_bound(page))->second;
        continue;
      }
      // Behind the end of the file nothing can be read.
      if (!tracing::read_memory(thread, page, bytes.data(), bytes.size())) break;
      looked_at += 1;
      const std::size_t hash = std::hash<std::string_view>()({bytes.data(), bytes.size()});
      const auto [entry, is_new] = pages_.try_emplace(page, Page{hash, 0});
      Page& seen = entry->second;
      if (!is_new && (seen.looks > 0 || seen.hash != hash)) seen.looks += 1;
      if (seen.looks >= kLooksForLeftOut) found += 1;
      page += kPageBytes;
    }
  }
  most_ = std::max(most_, found);
}

}  // namespace pawl::cli::watch
