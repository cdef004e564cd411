#include "wsp/process/epoll_sets.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "medium/descriptor.h"
#include "wsp/process/annex.h"
#include "wsp/process/program_rights.h"

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

Status cannot_fill(int set, int error_number, const std::string& why) {
  return FailedCall{error_number,
                    fmt::format("descriptor {} cannot be opened again: {}", set, why)};
}

Status control(int set, int operation, const EpollEntry& entry, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = entry.data;
  if (::epoll_ctl(set, operation, entry.number, &event) == 0 || errno == EEXIST || errno == EBADF)
    return {};
  return cannot_fill(set, errno, "an epoll set cannot be filled");
}

bool has_told_of(int set, const EpollEntry& entry) {
  for (epoll_event told{}; ::epoll_wait(set, &told, 1, 0) == 1;) {
    if (told.data.u64 == entry.data) return true;
  }
  return false;
}

// EPOLLONESHOT, and told already: each other registration hears of errors and of the end.
bool is_disarmed(const EpollEntry& entry) { return (entry.events & (EPOLLERR | EPOLLHUP)) == 0; }

// Of an empty or a full pipe, whose ends are both open.  What is in it is the same afterwards.
Result<bool> has_told_of_pipe(int set, const EpollEntry& entry) {
  const Descriptor both(
      ::open(link_to_descriptor(entry.number).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!both.valid()) return false;
  std::string had(static_cast<std::size_t>(std::max(::fcntl(both.get(), F_GETPIPE_SZ), 0)), 0);
  const ssize_t length = ::read(both.get(), had.data(), had.size());
  char byte = 0;
  if (length <= 0 && ::write(both.get(), &byte, 1) != 1) return false;
  const bool is_told = has_told_of(set, entry);
  const bool is_as_it_was =
      length <= 0 ? ::read(both.get(), &byte, 1) == 1
                  : ::write(both.get(), had.data(), static_cast<std::size_t>(length)) == length;
  if (is_as_it_was) return is_told;
  return cannot_fill(set, EIO, "a pipe in it does not take again what was in it");
}

// No call registers a file like that.  So it is told once more, here, while no other is in the set
// that could be told.  Of a file that is not ready (a listening socket, a timer) the program can
// hear no error and no end, and it stays registered for these; but for an idle standard stream,
// which others have, too.
Status add_disarmed(int set, const EpollEntry& entry, const std::set<int>& pipes) {
  PAWL_TRY(control(set, EPOLL_CTL_ADD, entry, entry.events | EPOLLIN | EPOLLOUT));
  if (has_told_of(set, entry)) return {};
  const Result<bool> told = pipes.contains(entry.number) ? has_told_of_pipe(set, entry) : false;
  if (!told.ok() || told.value()) return told.status();
  return control(set, EPOLL_CTL_MOD, entry, entry.events);
}

}  // namespace

Status fill_epoll(const SavedDescriptor& saved, const std::set<int>& pipes) {
  const int set = saved.facts.number;
  for (const bool disarmed : {true, false}) {
    for (const EpollEntry& entry : saved.entries) {
      if (is_disarmed(entry) != disarmed) continue;
      PAWL_TRY(disarmed ? add_disarmed(set, entry, pipes)
                        : control(set, EPOLL_CTL_ADD, entry, entry.events));
    }
  }
  return {};
}

Status check_epoll_watches(const SavedProcess& saved) {
  std::size_t needed = 0;
  for (const SavedDescriptor& descriptor : saved.descriptors) {
    if (descriptor.facts.same_as < 0) needed += descriptor.entries.size();
  }
  if (needed == 0) return {};
  const Result<ProgramRights> rights = ProgramRights::take(saved);
  if (!rights.ok()) return rights.status();
  // With few descriptors: each file in each set.
  const auto wide = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(needed))));
  std::vector<Descriptor> files;
  std::vector<Descriptor> sets;
  epoll_event event{};
  for (std::size_t made = 0; made < needed; ++made) {
    if (made < wide) files.emplace_back(::eventfd(0, EFD_CLOEXEC));
    if (made % wide == 0) sets.emplace_back(::epoll_create1(EPOLL_CLOEXEC));
    // More than this command may have open: it does not go further.
    if (!files.back().valid() || !sets.back().valid()) return {};
    if (::epoll_ctl(sets.back().get(), EPOLL_CTL_ADD, files[made % wide].get(), &event) == 0)
      continue;
    return FailedCall{errno,
                      fmt::format("the program watches {} files in its epoll sets, of which its "
                                  "user may have {} beside others by now; raise "
                                  "fs.epoll.max_user_watches (sysctl), or end others of its",
                                  needed, made)};
  }
  return {};
}

Status capture_epoll(Process& process, std::string_view information, SavedDescriptor& saved) {
  read_entries(information, saved.entries);
  return check_entries(process, saved.facts.number, saved.entries);
}

}  // namespace pawl::wsp
