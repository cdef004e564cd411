#include "wsp/process/epoll_sets.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "wsp/process/annex.h"

namespace pawl::wsp {

namespace {

void read_entries(std::string_view information, std::vector<EpollEntry>& into) {
  std::size_t from = 0;
  while ((from = information.find("tfd:", from)) != std::string_view::npos) {
    const std::size_t end = std::min(information.find('\n', from), information.size());
    const std::string line(information.substr(from, end - from));
    EpollEntry entry{};
    unsigned long long data = 0;
    if (std::sscanf(line.c_str(), "tfd: %d events: %x data: %llx", &entry.number, &entry.events,
                    &data) == 3) {
      entry.data = data;
      into.push_back(entry);
    }
    from = end;
  }
}

Status number_is_gone(int set, int number) {
  return Status::failure(
      ENOTSUP,
      fmt::format("descriptor {} cannot be kept: an epoll set in which a file is registered by the "
                  "number {}, which it has not any more; let the program remove a registration "
                  "before it closes a duplicate",
                  set, number));
}

// Of so many as the list has room for.  A file that is registered already gives EEXIST, and
// nothing changes.
Status check_registered(Process& process, int set, std::span<const EpollEntry> entries) {
  CallList& list = process.list();
  list.clear();
  const epoll_event nothing{};
  const std::uint64_t place = list.place(&nothing, sizeof(nothing));
  const auto add = [&](std::uint64_t operation, const EpollEntry& entry) {
    list.add(SYS_epoll_ctl, {static_cast<std::uint64_t>(set), operation,
                             static_cast<std::uint64_t>(entry.number), place});
  };
  for (const EpollEntry& entry : entries) add(EPOLL_CTL_ADD, entry);
  PAWL_TRY(process.run_list(process.leader()));
  std::vector<EpollEntry> added;
  const EpollEntry* gone = nullptr;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (list.call(i).error_number() == EEXIST) continue;
    gone = &entries[i];
    if (!list.call(i).failed()) added.push_back(entries[i]);
  }
  if (gone == nullptr) return {};
  const int number = gone->number;
  list.clear();
  for (const EpollEntry& entry : added) add(EPOLL_CTL_DEL, entry);
  PAWL_TRY(process.run_list(process.leader()));
  return number_is_gone(set, number);
}

// A registration belongs to the file that had the number then, while that is open by any number.
// By one number there may be several, of which all but one have it not any more.
Status check_entries(Process& process, int set, std::span<const EpollEntry> entries) {
  std::vector<int> numbers;
  numbers.reserve(entries.size());
  for (const EpollEntry& entry : entries) numbers.push_back(entry.number);
  std::sort(numbers.begin(), numbers.end());
  const auto twice = std::adjacent_find(numbers.begin(), numbers.end());
  if (twice != numbers.end()) return number_is_gone(set, *twice);
  while (!entries.empty()) {
    const auto next = entries.first(std::min(entries.size(), kAnnexCallsMax));
    PAWL_TRY(check_registered(process, set, next));
    entries = entries.subspan(next.size());
  }
  return {};
}

}  // namespace

Status capture_epoll(Process& process, std::string_view information, SavedDescriptor& saved) {
  read_entries(information, saved.entries);
  return check_entries(process, saved.facts.number, saved.entries);
}

}  // namespace pawl::wsp
