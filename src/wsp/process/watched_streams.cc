#include "wsp/process/watched_streams.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "medium/descriptor.h"

namespace pawl::wsp {

namespace {

bool is_stream(const SavedDescriptor& descriptor, int stream) {
  return descriptor.facts.kind == static_cast<std::uint32_t>(DescriptorKind::inherited) &&
         descriptor.facts.standard == stream;
}

bool watches(const SavedDescriptor& epoll, int number) {
  return std::any_of(epoll.entries.begin(), epoll.entries.end(),
                     [&](const EpollEntry& entry) { return entry.number == number; });
}

bool is_watched(const SavedProcess& saved, int stream) {
  const std::vector<SavedDescriptor>& all = saved.descriptors;
  return std::any_of(all.begin(), all.end(), [&](const SavedDescriptor& one) {
    return is_stream(one, stream) &&
           std::any_of(all.begin(), all.end(), [&](const SavedDescriptor& epoll) {
             return watches(epoll, one.facts.number);
           });
  });
}

bool can_be_watched(int stream) {
  const Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, stream, &event) == 0 || errno != EPERM;
}

// Of a file.
bool is_at_its_end(int stream) {
  char byte = 0;
  return ::pread(stream, &byte, 1, ::lseek(stream, 0, SEEK_CUR)) == 0;
}

bool needs_other_input(const SavedProcess& saved) {
  return is_watched(saved, STDIN_FILENO) && !can_be_watched(STDIN_FILENO) &&
         is_at_its_end(STDIN_FILENO);
}

}  // namespace

Status check_watched_streams(const SavedProcess& saved) {
  constexpr const char* kNames[] = {"input", "output", "error"};
  constexpr const char* kRemedies[] = {"cat FILE | pawl wsp restore ...",
                                       "pawl wsp restore ... | cat >FILE",
                                       "pawl wsp restore ... 2> >(cat >FILE)"};
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (!is_watched(saved, stream) || can_be_watched(stream)) continue;
    if (stream == STDIN_FILENO && is_at_its_end(stream)) continue;
    return Status::failure(
        EPERM, fmt::format("the program watches its standard {} (epoll), and that of this command, "
                           "descriptor {}, is a file, which cannot be watched; put a pipe in "
                           "between: {}",
                           kNames[stream], stream, kRemedies[stream]));
  }
  return {};
}

Status make_input_watchable(const SavedProcess& saved) {
  if (!needs_other_input(saved)) return {};
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return FailedCall{errno, "cannot make an input that can be watched"};
  const Descriptor ended(ends[0]);
  // Stays open as long as this process lives: without it more would be told than that nothing comes
  // (EPOLLHUP), which a program cannot keep from being told.
  const int other = ends[1];
  if (::shutdown(other, SHUT_WR) != 0 || ::dup2(ended.get(), STDIN_FILENO) < 0)
    return FailedCall{errno, "cannot make an input that can be watched"};
  return {};
}

}  // namespace pawl::wsp
