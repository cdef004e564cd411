#include "wsp/process/rebuild_descriptors.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "medium/descriptor.h"
#include "wsp/process/ended_connection.h"
#include "wsp/process/epoll_sets.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/internet_socket.h"
#include "wsp/process/object_owner.h"
#include "wsp/process/proc.h"
#include "wsp/process/program_rights.h"
#include "wsp/process/shared_ports.h"
#include "wsp/process/socket_name.h"
#include "wsp/process/socket_options.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kSetTicks = _IOW('T', 0, std::uint64_t);  // TFD_IOC_SET_TICKS
// More than can wait in a socket before it is connected; its peer may send on.
constexpr int kDrained = 1 << 20;
constexpr std::uint32_t kStatusFlags = O_APPEND | O_NONBLOCK;

Status cannot_open(const DescriptorFacts& facts, const std::string& what) {
  return FailedCall{errno,
                    fmt::format("descriptor {} cannot be opened again: {}", facts.number, what)};
}

Status cannot_open(const DescriptorFacts& facts, const Status& why) {
  return why.with_text(
      fmt::format("descriptor {} cannot be opened again: {}", facts.number, why.text()));
}

Status give_pipe_size(const DescriptorFacts& facts, int pipe) {
  const auto size = static_cast<int>(facts.value);
  if (size == 0 || ::fcntl(pipe, F_SETPIPE_SZ, size) >= size) return {};
  return cannot_open(facts, fmt::format("a pipe of {} bytes; raise fs.pipe-max-size or "
                                        "fs.pipe-user-pages-soft (sysctl), or restore with "
                                        "CAP_SYS_RESOURCE",
                                        size));
}

timespec time_of(std::uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / kSecondNs), static_cast<long>(nanoseconds % kSecondNs)};
}

class Rebuild {
 public:
  Rebuild(const SavedProcess& saved, SpareNumbers spare, const StandardStreams& standard,
          const SharedBytes& at)
      : saved_(saved),
        at_(at),
        standard_(standard),
        ports_(saved),
        reading_(spare.next_closed()),
        writing_(spare.next_closed()),
        ended_(saved) {
    for (const SavedDescriptor& descriptor : saved.descriptors) {
      if (kind_of(descriptor) != DescriptorKind::pipe) continue;
      own_pipes_.insert(descriptor.facts.number);
      if (descriptor.facts.same_as < 0) pipes_[descriptor.facts.inode].push_back(&descriptor);
    }
  }

  Status run(std::vector<int> kept) {
    kept.insert(kept.end(), standard_.begin(), standard_.end());
    close_all_but(kept);
    PAWL_TRY(each([this](const SavedDescriptor& one) {
      return is_internet_socket(one) ? Status{} : make(one);
    }));
    // One that listens must not have taken the address of one that comes later.  At once behind
    // each other: others may share the addresses of streams until give_reuse().
    PAWL_TRY(each([this](const SavedDescriptor& one) {
      return is_internet_socket(one) ? make(one) : Status{};
    }));
    PAWL_TRY(each([this](const SavedDescriptor& one) { return listen_again(one); }));
    give_reuse();
    // Now all sockets have their addresses: one may be another's peer.
    PAWL_TRY(each([this](const SavedDescriptor& one) { return connect_unix_socket(one); }));
    PAWL_TRY(each([](const SavedDescriptor& one) { return shut_down(one); }));
    // Last: those take addresses, and time.
    PAWL_TRY(each([this](const SavedDescriptor& one) { return make_reset(one); }));
    for (const SavedDescriptor& descriptor : saved_.descriptors) {
      if (descriptor.facts.same_as >= 0)
        PAWL_TRY(put(descriptor, ::dup(descriptor.facts.same_as), "another number of it"));
    }
    for (const int number : standard_) {
      if (number >= 0) ::close(number);
    }
    for (const SavedDescriptor& descriptor : saved_.descriptors) {
      if (kind_of(descriptor) == DescriptorKind::epoll && descriptor.facts.same_as < 0)
        PAWL_TRY(fill_epoll(descriptor, own_pipes_));
    }
    return {};
  }

 private:
  static DescriptorKind kind_of(const SavedDescriptor& descriptor) {
    return static_cast<DescriptorKind>(descriptor.facts.kind);
  }

  // Each that is an open file of its own.
  template <class Step>
  Status each(Step step) const {
    for (const SavedDescriptor& descriptor : saved_.descriptors) {
      if (descriptor.facts.same_as >= 0) continue;
      at_.note(name_of(descriptor));
      PAWL_TRY(step(descriptor));
    }
    at_.note("");
    return {};
  }

  // That a server may know.
  static std::string name_of(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    if (kind_of(descriptor) == DescriptorKind::file) return descriptor.text;
    const sockaddr_storage& named =
        facts.address_bytes > sizeof(sa_family_t) ? facts.address : facts.peer;
    if (named.ss_family != AF_UNIX) return "";
    const char* const path = reinterpret_cast<const sockaddr_un&>(named).sun_path;
    return {path, ::strnlen(path, sizeof(sockaddr_un::sun_path))};
  }

  static bool is_internet_socket(const SavedDescriptor& descriptor) {
    const DescriptorKind kind = kind_of(descriptor);
    return (kind == DescriptorKind::listening || kind == DescriptorKind::bound) &&
           descriptor.facts.domain != AF_UNIX;
  }

  // At once where it is to be: nothing is there, for what else is open has other numbers.
  static Status put(const SavedDescriptor& descriptor, int opened, const std::string& what) {
    const DescriptorFacts& facts = descriptor.facts;
    if (opened < 0) return cannot_open(facts, what);
    if (!move_descriptor(opened, facts.number, (facts.flags & O_CLOEXEC) != 0))
      return cannot_open(facts, "its number cannot be had");
    return {};
  }

  // What the kernel counts for who makes it.
  template <class Make>
  Status put_made(const SavedDescriptor& descriptor, const char* what, Make make) const {
    int made = -1;
    {
      const Result<ProgramRights> rights = ProgramRights::take(saved_);
      if (!rights.ok()) return rights.status();
      made = make();
    }
    // A clock of alarms takes a privilege, which the program may have left since.
    if (made < 0 && errno == EPERM) made = make();
    return put(descriptor, made, what);
  }

  Status make(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    const int non_blocking = static_cast<int>(facts.flags & O_NONBLOCK);
    switch (kind_of(descriptor)) {
      case DescriptorKind::file:
        return make_file(descriptor);
      case DescriptorKind::inherited:
        return make_inherited(descriptor, non_blocking);
      case DescriptorKind::pipe:
        return make_pipe(descriptor);
      case DescriptorKind::event_counter:
        return make_counter(descriptor, non_blocking);
      case DescriptorKind::timer:
        return make_timer(descriptor, non_blocking);
      case DescriptorKind::signals:
        return put_made(descriptor, "a signalfd", [&] {
          return static_cast<int>(
              ::syscall(SYS_signalfd4, -1, &facts.value, sizeof(facts.value), non_blocking));
        });
      case DescriptorKind::epoll:
        return put_made(descriptor, "an epoll set", [] { return ::epoll_create1(0); });
      case DescriptorKind::listening:
      case DescriptorKind::bound:
        return make_socket(descriptor);
      case DescriptorKind::reset:
        return {};  // make_reset()
    }
    errno = EINVAL;
    return cannot_open(facts, "it is of no known kind");
  }

  // The kernel tells who connects by a UNIX socket whose it is that listens.
  Status listen_again(const SavedDescriptor& descriptor) const {
    const DescriptorFacts& facts = descriptor.facts;
    if (kind_of(descriptor) != DescriptorKind::listening) return {};
    const Result<ProgramRights> rights = ProgramRights::take(saved_);
    if (!rights.ok()) return rights.status();
    if (::listen(facts.number, facts.backlog) == 0) return {};
    return cannot_open(facts, with_advice("a socket cannot listen at its address", errno, facts));
  }

  Status make_file(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    Result<Descriptor> opened = open_again(descriptor, saved_);
    if (!opened.ok()) return opened.status();
    PAWL_TRY(put(descriptor, opened.value().release(), descriptor.text));
    const int file = facts.number;
    if (facts.position != 0 && (facts.flags & O_PATH) == 0)
      ::lseek(file, static_cast<off_t>(facts.position), SEEK_SET);
    return {};
  }

  Status make_inherited(const SavedDescriptor& descriptor, int non_blocking) {
    const DescriptorFacts& facts = descriptor.facts;
    PAWL_TRY(put(descriptor, ::dup(standard_[std::clamp(facts.standard, 0, 2)]),
                 "a standard stream is missing"));
    // A terminal that the program has opened once more is the same stream now: the number of the
    // stream, where the program has it still, says whether it waits.
    const bool says = facts.number == facts.standard || !has_stream(facts.standard);
    const int stream = facts.number;
    if (says) ::fcntl(stream, F_SETFL, (::fcntl(stream, F_GETFL) & ~O_NONBLOCK) | non_blocking);
    return {};
  }

  bool has_stream(int standard) const {
    return std::any_of(saved_.descriptors.begin(), saved_.descriptors.end(),
                       [&](const SavedDescriptor& one) {
                         return kind_of(one) == DescriptorKind::inherited &&
                                one.facts.number == standard && one.facts.standard == standard;
                       });
  }

  // At reading_ and writing_.
  Status make_ends(const DescriptorFacts& facts) const {
    const Result<ProgramRights> rights = ProgramRights::take(saved_, facts);
    if (!rights.ok()) return rights.status();
    int ends[2];
    // The later one first, for it may have the place of the earlier one.
    if (::pipe(ends) == 0 && move_descriptor(ends[1], writing_, false) &&
        move_descriptor(ends[0], reading_, false))
      return {};
    return cannot_open(facts, "a pipe");
  }

  int open_pipe(const DescriptorFacts& facts, int end, int flags) const {
    const Result<ProgramRights> rights = ProgramRights::take(saved_, facts);
    return rights.ok() ? ::open(link_to_descriptor(end).c_str(), flags) : -1;
  }

  // With the first of its ends that the program has, all that it has.
  Status make_pipe(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    const std::vector<const SavedDescriptor*>& all = pipes_.at(facts.inode);
    if (all.front() != &descriptor) return {};
    PAWL_TRY(make_ends(facts));
    const Descriptor reading(reading_);
    const Descriptor writing(writing_);
    PAWL_TRY(give_pipe_size(facts, writing.get()));
    ::fcntl(writing.get(), F_SETFL, O_NONBLOCK);
    const auto length = static_cast<ssize_t>(descriptor.text.size());
    if (length > 0 &&
        ::write(writing.get(), descriptor.text.data(), descriptor.text.size()) != length)
      return cannot_open(facts, "a pipe does not take what was in it");
    std::set<std::uint32_t> had;
    for (const SavedDescriptor* const one : all) {
      const std::uint32_t mode = one->facts.flags & O_ACCMODE;
      const int end = mode == O_RDONLY ? reading.get() : writing.get();
      // What pipe(2) has made is an open file for each end; each further one was opened.
      const bool is_made = mode != O_RDWR && had.insert(mode).second;
      const int file =
          is_made ? ::dup(end) : open_pipe(facts, end, static_cast<int>(mode) | O_NONBLOCK);
      if (file < 0) return cannot_open(one->facts, "a pipe");
      ::fcntl(file, F_SETFL, static_cast<int>(one->facts.flags & (kStatusFlags | O_DIRECT)));
      PAWL_TRY(put(*one, file, "a pipe"));
    }
    // Behind that: only its owner may open it.
    return give_to_owner(facts, writing.get());
  }

  Status make_counter(const SavedDescriptor& descriptor, int non_blocking) {
    const DescriptorFacts& facts = descriptor.facts;
    PAWL_TRY(put_made(descriptor, "an eventfd", [&] {
      return ::eventfd(0, non_blocking | (facts.type != 0 ? EFD_SEMAPHORE : 0));
    }));
    if (facts.value != 0 && ::write(facts.number, &facts.value, sizeof(facts.value)) < 0)
      return cannot_open(facts, "an eventfd does not take its count");
    return {};
  }

  Status make_timer(const SavedDescriptor& descriptor, int non_blocking) {
    const DescriptorFacts& facts = descriptor.facts;
    PAWL_TRY(put_made(descriptor, "a timerfd",
                      [&] { return ::timerfd_create(facts.clock, non_blocking); }));
    const int timer = facts.number;
    const int flags = is_deadline_by_the_clock(facts) ? facts.type : 0;
    const itimerspec times{time_of(facts.times[1]), time_of(facts.times[0])};
    if (::timerfd_settime(timer, flags, &times, nullptr) != 0)
      return cannot_open(facts, "a timerfd cannot be set");
    if (facts.value != 0 && ::ioctl(timer, kSetTicks, &facts.value) != 0)
      return cannot_open(facts,
                         "a timerfd does not take the times that it has expired, which takes "
                         "CONFIG_CHECKPOINT_RESTORE of the kernel");
    return {};
  }

  Status make_socket(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    if (facts.domain == AF_UNIX) return make_unix_socket(descriptor);
    Result<Descriptor> made = ports_.make(descriptor);
    if (!made.ok()) return cannot_open(facts, made.status());
    PAWL_TRY(put(descriptor, made.value().release(), "a socket"));
    // At once: until then it hears from everybody.
    return connect_socket(facts);
  }

  Status make_unix_socket(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    const int non_blocking = static_cast<int>(facts.flags & O_NONBLOCK);
    Result<Descriptor> made =
        make_owned_socket(saved_, facts, AF_UNIX, facts.type | non_blocking, facts.protocol);
    if (!made.ok()) return cannot_open(facts, made.status());
    PAWL_TRY(put(descriptor, made.value().release(), "a socket"));
    if (const Status given = give_socket_options(descriptor, facts.number); !given.ok())
      return cannot_open(facts, given);
    if (facts.address_bytes > sizeof(sa_family_t)) {
      const Status bound = bind_unix_socket(facts, facts.number, saved_);
      if (!bound.ok()) return cannot_open(facts, bound);
    }
    // Behind it: its mode was that of the name until then.
    return give_to_owner(facts, facts.number);
  }

  // Behind all that listen, which asks for the address once more, and before anything that takes
  // time: until then others may share it.
  void give_reuse() const {
    for (const SavedDescriptor& descriptor : saved_.descriptors) {
      if (descriptor.facts.same_as >= 0) continue;
      for (const SocketOption& option : descriptor.options) {
        const bool is_reuse = option.name == SO_REUSEADDR || option.name == SO_REUSEPORT;
        if (is_reuse && option.level == SOL_SOCKET)
          ::setsockopt(descriptor.facts.number, option.level, option.name, option.value,
                       option.bytes);
      }
    }
  }

  Status give_to_owner(const DescriptorFacts& facts, int object) const {
    const Status given = give_owner(saved_, facts, object);
    return given.ok() ? Status{} : cannot_open(facts, given);
  }

  static Status connect_socket(const DescriptorFacts& facts) {
    if (facts.peer_bytes == 0) return {};
    if (const Status connected = connect_to_peer(facts, facts.number); !connected.ok())
      return cannot_open(facts, connected);
    drain(facts.number);
    return {};
  }

  // What came before it was connected: anybody could send that.
  static void drain(int socket) {
    for (int i = 0; i < kDrained; ++i) {
      if (::recv(socket, nullptr, 0, MSG_DONTWAIT) < 0) return;
    }
  }

  // The peer's name may lead elsewhere by now: with the program's rights.  One that is gone leaves
  // the socket without a peer, of which sending tells; so does one that hears another one alone.
  Status connect_unix_socket(const SavedDescriptor& descriptor) const {
    const DescriptorFacts& facts = descriptor.facts;
    if (kind_of(descriptor) != DescriptorKind::bound || facts.domain != AF_UNIX ||
        facts.peer_bytes == 0)
      return {};
    const Result<ProgramRights> rights = ProgramRights::take(saved_);
    if (!rights.ok()) return rights.status();
    Status connected = connect_socket(facts);
    switch (connected.error_number()) {
      case ENOENT:
      case ENOTDIR:
      case ELOOP:
      case EACCES:
      case ECONNREFUSED:
      case EPROTOTYPE:
      case EPERM:
      case EINVAL:
        return {};
      default:
        return connected;
    }
  }

  // One of the Internet that is not connected is shut down nevertheless.
  static Status shut_down(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    const DescriptorKind kind = kind_of(descriptor);
    if ((kind != DescriptorKind::bound && kind != DescriptorKind::listening) || facts.shut == 0)
      return {};
    const int how = facts.shut == kShutReceiving ? SHUT_RD
                    : facts.shut == kShutSending ? SHUT_WR
                                                 : SHUT_RDWR;
    if (::shutdown(facts.number, how) == 0 || errno == ENOTCONN) return {};
    return cannot_open(facts, "a socket cannot be shut down");
  }

  // A connection whose other end was restarted.
  Status make_reset(const SavedDescriptor& descriptor) {
    const DescriptorFacts& facts = descriptor.facts;
    if (kind_of(descriptor) != DescriptorKind::reset) return {};
    const int non_blocking = static_cast<int>(facts.flags & O_NONBLOCK);
    Result<Descriptor> made = ended_.make(facts);
    if (!made.ok()) return cannot_open(facts, made.status());
    ::fcntl(made.value().get(), F_SETFL, non_blocking);
    PAWL_TRY(put(descriptor, made.value().release(), "a connection"));
    return give_to_owner(facts, facts.number);
  }

  const SavedProcess& saved_;
  const SharedBytes& at_;
  StandardStreams standard_;
  SharedPorts ports_;
  // Where the ends of a pipe are until those of the program are made.
  int reading_;
  int writing_;
  std::map<std::uint64_t, std::vector<const SavedDescriptor*>> pipes_;  // by inode
  std::set<int> own_pipes_;
  EndedConnections ended_;
};

}  // namespace

bool move_descriptor(int from, int to, bool closes_on_exec) {
  if (from == to) return ::fcntl(to, F_SETFD, closes_on_exec ? FD_CLOEXEC : 0) == 0;
  const bool is_moved = ::dup3(from, to, closes_on_exec ? O_CLOEXEC : 0) == to;
  const int error_number = errno;
  ::close(from);
  errno = error_number;
  return is_moved;
}

void close_all_but(const std::vector<int>& kept) {
  for (const int number : numbers_in("/proc/self/fd")) {
    if (std::find(kept.begin(), kept.end(), number) == kept.end()) ::close(number);
  }
}

Status check_pipes(const SavedProcess& saved) {
  std::set<std::uint64_t> made;
  std::vector<Descriptor> held;
  for (const SavedDescriptor& descriptor : saved.descriptors) {
    const DescriptorFacts& facts = descriptor.facts;
    if (facts.kind != static_cast<std::uint32_t>(DescriptorKind::pipe) ||
        !made.insert(facts.inode).second)
      continue;
    int ends[2];
    {
      const Result<ProgramRights> rights = ProgramRights::take(saved, facts);
      if (!rights.ok()) return rights.status();
      // More than this command may have open: it does not go further.
      if (::pipe2(ends, O_CLOEXEC) != 0)
        return errno == EMFILE ? Status{} : cannot_open(facts, "a pipe");
    }
    const Descriptor reading(ends[0]);
    PAWL_TRY(give_pipe_size(facts, held.emplace_back(ends[1]).get()));
  }
  return {};
}

Status rebuild_descriptors(const SavedProcess& saved, SpareNumbers spare,
                           const StandardStreams& standard, const std::vector<int>& kept,
                           const SharedBytes& at) {
  return Rebuild(saved, std::move(spare), standard, at).run(kept);
}

}  // namespace pawl::wsp
