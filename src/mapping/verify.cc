// PAWL_VERIFY=1: the proof that every store of a program is marked, or the list of those that are
// not.

#include <dlfcn.h>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "mapping/implementation.h"
#include "medium/cache_lines.h"

namespace pawl {
namespace {

constexpr std::size_t kReportsMax = 16;  // by one commit; the rest is counted

// ", mapped by main+0x1f (./program)": the nearest symbol before an address of code.
std::string name_owner(const void* address) {
  Dl_info info{};
  if (address == nullptr || ::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  const auto distance_from = [&](const void* start) {
    return static_cast<const char*>(address) - static_cast<const char*>(start);
  };
  char distance[32];
  const bool has_symbol = info.dli_sname != nullptr;
  std::snprintf(distance, sizeof distance, "+0x%tx",
                distance_from(has_symbol ? info.dli_saddr : info.dli_fbase));
  return ", mapped by " +
         (has_symbol ? std::string(info.dli_sname) + distance + " (" + info.dli_fname + ")"
                     : std::string(info.dli_fname) + distance);
}

// Calls visit(offset, length) for each run of bytes that differ within the lines.
template <class Visit>
void for_changed_bytes(const std::byte* now, const std::byte* then, std::size_t bytes,
                       std::uint64_t lines, Visit visit) {
  std::size_t start = bytes;
  for (std::size_t at = 0; at <= bytes; ++at) {
    const bool is_changed =
        at < bytes && (lines >> (at / kLineBytes) & 1) != 0 && now[at] != then[at];
    if (is_changed && start == bytes) start = at;
    if (!is_changed && start != bytes) {
      visit(start, at - start);
      start = bytes;
    }
  }
}

}  // namespace

Status Mapping::Implementation::find_unmarked(std::uint64_t first_page, std::uint64_t end_page,
                                              TakenPages& taken) {
  if (!view_.mapped()) return {};
  first_page = std::max(first_page, view_.first_page());
  const std::uint64_t end = std::min(end_page, view_.accessible_end_page());
  TakenPages found;
  std::size_t reports = 0;
  const std::uint64_t unmarked_before = unmarked_bytes_;
  auto mark = taken.begin();
  for (std::uint64_t page = first_page; page < end && page * kPageBytes < size_; ++page) {
    while (mark != taken.end() && mark->page < page) ++mark;
    const std::uint64_t marked = mark != taken.end() && mark->page == page ? mark->lines : 0;
    const std::size_t valid = std::min<std::uint64_t>(kPageBytes, size_ - page * kPageBytes);
    PageBuffer now;
    PAWL_TRY(load_from_view(page, 0, now.bytes));
    auto committed = page_before(page);
    if (!committed.ok()) return committed.status();
    const std::byte* const then = committed.value()->bytes.data();
    std::uint64_t changed = 0;
    for_changed_bytes(now.bytes.data(), then, valid, ~marked,
                      [&](std::size_t offset, std::size_t length) {
                        changed |= line_bits(offset, length);
                        unmarked_bytes_ += length;
                        if (reports++ >= kReportsMax) return;
                        std::fprintf(stderr,
                                     "pawl: unmarked: %zu bytes at %p, offset %" PRIu64
                                     " of %s, changed without a mark%s\n",
                                     length, static_cast<void*>(view_.bytes(page) + offset),
                                     page * kPageBytes + offset, medium_->path().c_str(),
                                     name_owner(options_.mapped_by).c_str());
                      });
    if (changed != 0) found.push_back({page, changed});
  }
  if (reports > kReportsMax) {
    std::fprintf(stderr, "pawl: unmarked: %zu more places, %" PRIu64 " bytes in all\n",
                 reports - kReportsMax, unmarked_bytes_ - unmarked_before);
  }
  if (found.empty()) return {};
  taken.insert(taken.end(), found.begin(), found.end());
  join(taken);
  return {};
}

}  // namespace pawl
