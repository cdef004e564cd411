// The open descriptors of a program that stands still: what each is, and what the kernel holds of
// it.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>

#include "medium/descriptor.h"
#include "wsp/process/bounded_child.h"
#include "wsp/process/capture.h"
#include "wsp/process/epoll_sets.h"
#include "wsp/process/event_counter.h"
#include "wsp/process/file_proof.h"
#include "wsp/process/interface_name.h"
#include "wsp/process/mount.h"
#include "wsp/process/multicast.h"
#include "wsp/process/network.h"
#include "wsp/process/object_owner.h"
#include "wsp/process/open_files.h"
#include "wsp/process/proc.h"
#include "wsp/process/program_rights.h"
#include "wsp/process/shared_ports.h"
#include "wsp/process/signed_sockets.h"
#include "wsp/process/socket_name.h"
#include "wsp/process/socket_options.h"
#include "wsp/process/unix_diag.h"

namespace pawl::wsp {

namespace {

constexpr int kTcpClosed = 7;  // TCP_CLOSE, as the kernel counts
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kOwnTerminal = 5U << 8;  // /dev/tty, as makedev(3) has 5 and 0

Status cannot_keep(int number, const std::string& what) {
  const std::string remedy =
      number <= 2 ? fmt::format("have it lead elsewhere: {}/dev/null", number == 0   ? "<"
                                                                       : number == 1 ? ">"
                                                                                     : "2>")
                  : fmt::format("if the program inherits it, start it without: {}<&-", number);
  return Status::failure(
      ENOTSUP, fmt::format("descriptor {} cannot be kept: {} ({})", number, what, remedy));
}

template <class T>
T option_of(int socket, int level, int name) {
  T value{};
  socklen_t bytes = sizeof(value);
  return ::getsockopt(socket, level, name, &value, &bytes) == 0 ? value : T{};
}

// Those whose options are known, and kept.
bool is_known_protocol(const DescriptorFacts& facts) {
  if (facts.domain == AF_UNIX) return true;
  switch (facts.protocol) {
    case IPPROTO_TCP:
    case IPPROTO_MPTCP:
    case IPPROTO_UDP:
      return true;
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
      return facts.type == SOCK_DGRAM;  // ping's
    default:
      return false;
  }
}

// What the kernel does not tell whole, so that it cannot be given again.
Status check_socket(pid_t process, int socket, const DescriptorFacts& facts) {
  socklen_t instructions = 0;
  const bool has_answer =
      ::getsockopt(socket, SOL_SOCKET, SO_GET_FILTER, nullptr, &instructions) == 0;
  if (has_answer ? instructions != 0 : errno == EACCES || errno == EPERM)
    return cannot_keep(facts.number, "a socket with a filter (SO_ATTACH_FILTER, SO_ATTACH_BPF)");
  if (facts.domain == AF_UNIX || facts.type != SOCK_DGRAM) return {};
  switch (membership_of(process, socket, facts.domain)) {
    case Membership::none:
      break;
    case Membership::member:
      return cannot_keep(facts.number, "a socket that is a member of a multicast group");
    case Membership::not_known:
      return cannot_keep(facts.number,
                         "a socket that may be a member of a multicast group: there are more of "
                         "them (/proc/net/igmp) than a save asks about");
  }
  return {};
}

bool hears_of_changes(int netlink) {
  std::array<std::uint32_t, 64> groups{};
  socklen_t bytes = sizeof(groups);
  if (::getsockopt(netlink, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, groups.data(), &bytes) != 0 ||
      bytes > sizeof(groups))
    return true;
  return std::any_of(groups.begin(), groups.end(), [](std::uint32_t bits) { return bits != 0; });
}

// What is read once for all descriptors.
struct Readers {
  explicit Readers(pid_t leader) : mounts(leader) {}
  SocketOptionReader options;
  SignedSockets signed_sockets;
  UnixSockets unix_sockets;
  MountTable mounts;
  bool has_waited = false;  // for a file server, in vain
};

// As one that was aborted is, too, which is closed as a new one is, and has seen no packets.  Of
// UNIX sockets alone is it told that they send no more, and receive still.
std::uint32_t read_shut(int socket, bool listens, const DescriptorFacts& facts, Readers& readers) {
  const UnixSocketFacts* const told =
      facts.domain == AF_UNIX ? readers.unix_sockets.find(facts.inode, listens) : nullptr;
  if (told != nullptr) return told->shut;
  pollfd looked{socket, POLLRDHUP, 0};
  if (::poll(&looked, 1, 0) != 1 || (looked.revents & POLLRDHUP) == 0) return 0;
  return (looked.revents & POLLHUP) != 0 ? kShutReceiving | kShutSending : kShutReceiving;
}

// One that asks the kernel, as libc does to find which addresses there are: what it has asked is
// answered by an error, and its owner asks anew.
Status capture_netlink(int socket, DescriptorFacts& facts) {
  if (hears_of_changes(socket))
    return cannot_keep(facts.number, "a netlink socket that is a member of a group");
  facts.kind = static_cast<std::uint32_t>(DescriptorKind::reset);
  return {};
}

// The kernel answers a family alone where there is no name, and one byte behind a name of 108, with
// which no call takes it.
std::uint32_t bytes_of_name(const DescriptorFacts& facts, std::uint32_t bytes) {
  if (facts.domain != AF_UNIX) return bytes;
  return bytes <= sizeof(sa_family_t) ? 0 : std::min<std::uint32_t>(bytes, sizeof(sockaddr_un));
}

int read_backlog(int socket, const DescriptorFacts& facts, Readers& readers) {
  const UnixSocketFacts* const told =
      facts.domain == AF_UNIX ? readers.unix_sockets.find(facts.inode, true) : nullptr;
  if (told != nullptr) return static_cast<int>(told->backlog);
  if (facts.protocol != IPPROTO_TCP) return SOMAXCONN;
  return static_cast<int>(option_of<tcp_info>(socket, IPPROTO_TCP, TCP_INFO).tcpi_sacked);
}

Status capture_socket(pid_t process, int socket, Readers& readers, SavedDescriptor& saved) {
  DescriptorFacts& facts = saved.facts;
  PAWL_TRY(read_owner(socket, facts));
  if (const Status ours = check_network(socket); !ours.ok())
    return cannot_keep(facts.number, ours.text());
  facts.domain = option_of<int>(socket, SOL_SOCKET, SO_DOMAIN);
  if (facts.domain == AF_NETLINK) return capture_netlink(socket, facts);
  if (facts.domain != AF_INET && facts.domain != AF_INET6 && facts.domain != AF_UNIX) {
    return cannot_keep(
        facts.number, fmt::format("a socket of address family {}, of which only Internet, UNIX and "
                                  "netlink sockets are kept",
                                  facts.domain));
  }
  facts.type = option_of<int>(socket, SOL_SOCKET, SO_TYPE);
  facts.protocol = option_of<int>(socket, SOL_SOCKET, SO_PROTOCOL);
  if (facts.type == SOCK_RAW)
    return cannot_keep(facts.number, "a raw socket (its filters are not kept)");
  if (!is_known_protocol(facts)) {
    return cannot_keep(facts.number,
                       fmt::format("a socket of protocol {}, of which only TCP, MPTCP, UDP and "
                                   "ping's are kept",
                                   facts.protocol));
  }
  socklen_t bytes = sizeof(facts.peer);
  const bool is_stream = facts.type != SOCK_DGRAM;
  const bool listens = option_of<int>(socket, SOL_SOCKET, SO_ACCEPTCONN) != 0;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&facts.peer), &bytes) == 0)
    facts.peer_bytes = bytes;
  const auto info = !listens && is_stream && facts.protocol == IPPROTO_TCP
                        ? option_of<tcp_info>(socket, IPPROTO_TCP, TCP_INFO)
                        : tcp_info{};
  // One that was reset is closed as a new one is, but has seen packets.
  const bool was_used = (info.tcpi_state != 0 && info.tcpi_state != kTcpClosed) ||
                        info.tcpi_segs_in != 0 || info.tcpi_segs_out != 0;
  // A connection ends with the machine; its end is as if the other side had been restarted.
  const bool may_be_connected = is_stream && !listens;
  const bool was_connected = may_be_connected && (facts.peer_bytes != 0 || was_used);
  if (!was_connected) facts.shut = read_shut(socket, listens, facts, readers);
  if (was_connected || (may_be_connected && (facts.shut & kShutReceiving) != 0)) {
    facts.kind = static_cast<std::uint32_t>(DescriptorKind::reset);
    facts.peer_bytes = 0;
    return {};
  }
  facts.kind =
      static_cast<std::uint32_t>(listens ? DescriptorKind::listening : DescriptorKind::bound);
  bytes = sizeof(facts.address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&facts.address), &bytes) == 0)
    facts.address_bytes = bytes_of_name(facts, bytes);
  facts.peer_bytes = bytes_of_name(facts, facts.peer_bytes);
  note_interface(facts.address);
  note_interface(facts.peer);
  if (listens) facts.backlog = read_backlog(socket, facts, readers);
  readers.options.read(socket, saved);
  switch (readers.signed_sockets.judge(socket, facts)) {
    case SocketKeys::none:
      break;
    case SocketKeys::some:
      return cannot_keep(facts.number, "a socket with keys (TCP_MD5SIG, TCP_AO_ADD_KEY)");
    case SocketKeys::not_known:
      return cannot_keep(
          facts.number,
          "a socket that may have keys (TCP_MD5SIG): more sockets listen at its port than "
          "a save asks about");
  }
  return check_socket(process, socket, facts);
}

// Of packets (O_DIRECT) nothing tells where one ends.
Status check_packets(int pipe, const DescriptorFacts& facts) {
  int waiting = 0;
  if ((facts.flags & O_DIRECT) == 0 || ::ioctl(pipe, FIONREAD, &waiting) != 0 || waiting == 0)
    return {};
  return cannot_keep(facts.number, "packets (O_DIRECT) wait in the pipe");
}

// What waits in a pipe stays there: it is copied into one of ours.
Status capture_pipe(pid_t process, int handle, int number, SavedDescriptor& saved) {
  Descriptor end(::open(fmt::format("/proc/{}/fd/{}", process, number).c_str(),
                        O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const bool is_of_another_user = !end.valid();
  if (is_of_another_user)
    end.reset(static_cast<int>(::syscall(SYS_pidfd_getfd, handle, number, 0)));
  if (!end.valid()) return cannot_keep(number, "the pipe cannot be read");
  PAWL_TRY(read_owner(end.get(), saved.facts));
  PAWL_TRY(check_packets(end.get(), saved.facts));
  const int size = ::fcntl(end.get(), F_GETPIPE_SZ);
  saved.facts.value = size > 0 ? static_cast<std::uint64_t>(size) : 0;
  // Of an end to write to, the other one tells what waits there.
  if (is_of_another_user && (saved.facts.flags & O_ACCMODE) == O_WRONLY) return {};
  int waiting = 0;
  if (::ioctl(end.get(), FIONREAD, &waiting) != 0 || waiting == 0) return {};
  int copy[2];
  if (::pipe2(copy, O_CLOEXEC | O_NONBLOCK) != 0) return FailedCall{errno, "cannot make a pipe"};
  const Descriptor reading(copy[0]);
  const Descriptor writing(copy[1]);
  const bool is_as_large = ::fcntl(writing.get(), F_SETPIPE_SZ, size) >= size;
  const ssize_t copied =
      ::tee(end.get(), writing.get(), static_cast<std::size_t>(waiting), SPLICE_F_NONBLOCK);
  if (copied < 0) return FailedCall{errno, "cannot copy what waits in a pipe"};
  if (copied < waiting && !is_as_large) {
    return cannot_keep(number, fmt::format("what waits in the pipe does not fit into one that this "
                                           "user may make now; raise fs.pipe-user-pages-soft or "
                                           "fs.pipe-max-size (sysctl) to have one of {} bytes",
                                           size));
  }
  saved.text.resize(static_cast<std::size_t>(waiting));
  const ssize_t got = ::read(reading.get(), saved.text.data(), saved.text.size());
  if (got != waiting) return cannot_keep(number, "what waits in the pipe cannot be read");
  return {};
}

std::uint64_t nanoseconds(std::string_view text) {
  // "(seconds, nanoseconds)"
  if (text.starts_with('(')) text.remove_prefix(1);
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return 0;
  return number_of(text.substr(0, comma)) * kNsPerSecond + number_of(text.substr(comma + 1));
}

bool is_known_device(const std::string& name) {
  return name == "/dev/null" || name == "/dev/zero" || name == "/dev/full" ||
         name == "/dev/random" || name == "/dev/urandom";
}

struct Looked {
  FileProof proof;
  std::string name;  // of a socket none
  std::string information;
  std::optional<Mount> mount;  // none, too, in another namespace
};

Status capture_counter(int handle, std::string_view information, SavedDescriptor& saved) {
  DescriptorFacts& facts = saved.facts;
  saved.identity = number_of(field_of(information, "eventfd-id"));
  facts.kind = static_cast<std::uint32_t>(DescriptorKind::event_counter);
  facts.value = number_of(field_of(information, "eventfd-count"), 16);
  if (const std::string_view told = field_of(information, "eventfd-semaphore"); !told.empty()) {
    facts.type = static_cast<int>(number_of(told));
    return {};
  }
  const Descriptor counter(static_cast<int>(::syscall(SYS_pidfd_getfd, handle, facts.number, 0)));
  const Result<bool> found = is_semaphore(counter.get(), facts.value);
  if (!found.ok()) return cannot_keep(facts.number, found.status().text());
  facts.type = found.value() ? 1 : 0;
  return {};
}

// By which the program's descriptors are looked at.
struct Ways {
  Descriptor handle;       // pidfd_open(2)
  Descriptor files;        // /proc/PID/fd
  Descriptor information;  // /proc/PID/fdinfo
};

Result<Ways> open_ways(pid_t leader) {
  const auto open_directory = [leader](const char* name) {
    return Descriptor(
        ::open(fmt::format("/proc/{}/{}", leader, name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  };
  Ways ways{Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0))),
            open_directory("fd"), open_directory("fdinfo")};
  if (ways.handle.valid() && ways.files.valid() && ways.information.valid()) return ways;
  return FailedCall{errno, "cannot look at the program"};
}

void read_timer(std::string_view information, DescriptorFacts& into) {
  into.clock = static_cast<int>(number_of(field_of(information, "clockid")));
  into.value = number_of(field_of(information, "ticks"));
  into.type = static_cast<int>(number_of(field_of(information, "settime flags"), 8));
  into.times[0] = nanoseconds(field_of(information, "it_value"));
  into.times[1] = nanoseconds(field_of(information, "it_interval"));
}

// The kernel does not start a periodic one that has expired again before somebody reads it, or asks
// what is left. Only then does it count how often it would have expired since.
Status capture_timer(const Ways& ways, std::string_view information, DescriptorFacts& facts) {
  facts.kind = static_cast<std::uint32_t>(DescriptorKind::timer);
  read_timer(information, facts);
  if (has_stopped(facts)) {
    const Descriptor timer(
        static_cast<int>(::syscall(SYS_pidfd_getfd, ways.handle.get(), facts.number, 0)));
    itimerspec left{};
    if (::timerfd_gettime(timer.get(), &left) != 0)
      return FailedCall{errno, "cannot ask a timerfd what is left"};
    read_timer(read_proc_in(ways.information.get(), std::to_string(facts.number)), facts);
    if (has_stopped(facts)) facts.times[0] = facts.times[1];  // it has expired once more
  }
  if (!is_deadline_by_the_clock(facts) || facts.times[0] == 0) return {};
  // Behind what is left: no deadline comes early.
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  facts.times[0] += static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
                    static_cast<std::uint64_t>(now.tv_nsec);
  return {};
}

Status capture_nameless(Process& process, const Ways& ways, const Looked& looked,
                        SavedDescriptor& saved) {
  DescriptorFacts& facts = saved.facts;
  const std::string_view information = looked.information;
  const auto set_kind = [&](DescriptorKind kind) { facts.kind = static_cast<std::uint32_t>(kind); };
  if (looked.name == "anon_inode:[eventfd]")
    return capture_counter(ways.handle.get(), information, saved);
  if (looked.name == "anon_inode:[timerfd]") return capture_timer(ways, information, facts);
  if (looked.name == "anon_inode:[signalfd]") {
    set_kind(DescriptorKind::signals);
    facts.value = number_of(field_of(information, "sigmask"), 16);
  } else if (looked.name == "anon_inode:[eventpoll]") {
    set_kind(DescriptorKind::epoll);
    return capture_epoll(process, information, saved);
  } else {
    return cannot_keep(facts.number, looked.name);
  }
  return {};
}

// One of the kernel's, of /proc/pressure or of a control group.
bool is_pressure_file(const std::string& name, const FileProof& proof) {
  const std::filesystem::path path(name);
  return proof.birth_time_ns == 0 &&
         (path.parent_path().filename() == "pressure" || path.extension() == ".pressure");
}

// The kernel does, of its own files (sysctl), and not for the user of files.
bool asks_effective_user(const Looked& looked) {
  return looked.proof.inode == 0 && looked.mount && looked.mount->type == "proc";
}

bool is_our_effective(const ProcessFacts& facts) {
  return facts.user[1] == ::geteuid() && facts.group_ids[1] == ::getegid();
}

// Whoever has time finds out: a server, who has a lease, or a process that could not try it in
// time.
bool is_unknown(int error_number) {
  return error_number == EAGAIN || error_number == ETIMEDOUT || error_number == ECANCELED;
}

// As a restore opens it: of its own files (sysctl) the kernel asks for the effective user.
Status try_opening(const Looked& looked, int access, const SavedProcess& program) {
  return try_in_child(kServerTimeMax, [&] {
    ProgramRights::take_whole_ones();
    return open_file(looked.name, looked.proof, access, program, true).status();
  });
}

// Why a name does not lead to the file.  Unknown where only a server knows.  Of a file that lies on
// this machine it is tried: one on the way to it may lie elsewhere.
template <class Try>
Status failure_of_name(const Looked& looked, const Status& known, Readers& readers, Try try_it) {
  const int error_number = known.error_number();
  if (error_number != EAGAIN || is_elsewhere(looked.name, error_number) || readers.has_waited)
    return known;
  const bool is_overlay = looked.mount && looked.mount->type == "overlay";
  if (!answers_by_itself(looked.mount) && !is_overlay) return known;
  Status tried = try_it();
  readers.has_waited = tried.error_number() == ETIMEDOUT;
  return tried;
}

// Under its name, and to be opened again.
Status capture_file(const Looked& looked, Readers& readers, SavedDescriptor& saved,
                    const SavedProcess& program) {
  const FileProof& proof = looked.proof;
  DescriptorFacts& facts = saved.facts;
  facts.kind = static_cast<std::uint32_t>(DescriptorKind::file);
  facts.position = number_of(field_of(looked.information, "pos"));
  saved.text = looked.name;
  facts.type = static_cast<std::int32_t>(proof.type);
  facts.value = proof.device_number;
  facts.times[0] = proof.birth_time_ns;
  if (proof.inode == 0 && is_of_a_process(looked.name)) {
    return cannot_keep(facts.number, looked.name +
                                         ", the file of a process; let the program close "
                                         "it, and open it each time that it reads it");
  }
  if (is_pressure_file(looked.name, proof) && (facts.flags & O_ACCMODE) != O_RDONLY) {
    return cannot_keep(facts.number,
                       looked.name +
                           ", open for writing: the kernel does not tell the trigger that "
                           "was written there (PSI); let the program close it");
  }
  if (!S_ISCHR(proof.type) && !S_ISBLK(proof.type) && looked.mount)
    facts.times[1] = looked.mount->restrictions;
  // Where it has no birth time, or is a device, it will have to be opened with the program's
  // rights.
  const bool takes_rights =
      (proof.birth_time_ns == 0 || S_ISBLK(proof.type)) && !S_ISCHR(proof.type);
  const auto access = static_cast<int>(facts.flags & (O_ACCMODE | O_PATH));
  const Result<Descriptor> found = find_known_file(looked.name, proof);
  if (!found.ok()) {
    const Status failure = failure_of_name(looked, found.status(), readers, [&] {
      if (takes_rights) return try_opening(looked, access, program);
      return try_in_child(kServerTimeMax,
                          [&] { return find_file(looked.name, proof, true).status(); });
    });
    if (failure.ok()) return {};
    const int error_number = failure.error_number();
    if (is_elsewhere(looked.name, error_number))
      return cannot_keep(facts.number, "the file " + looked.name + " is not there under its name");
    // Its name is the kernel's word; whoever has time asks the server.
    saved.is_served = is_unknown(error_number);
    if (saved.is_served) return {};
    return cannot_keep(facts.number, fmt::format("the file {} cannot be reached by its name: {}",
                                                 looked.name, std::strerror(error_number)));
  }
  if (!takes_rights) return {};
  saved.is_served = proof.birth_time_ns == 0 && !answers_by_itself(looked.mount);
  if (saved.is_served) return {};
  Status opened = open_known_file(looked.name, proof, access, program).status();
  if (opened.ok() && asks_effective_user(looked) && !is_our_effective(program.process))
    opened = try_opening(looked, access, program);
  saved.is_served = is_unknown(opened.error_number());
  if (opened.ok() || saved.is_served) return {};
  return cannot_keep(facts.number, opened.text());
}

// The standard stream of the supervisor's own that the descriptor is, for the program inherited it:
// a terminal, pipe or socket that leads elsewhere behind a restore, to that of whoever restores it.
// What the program made so itself is its own.
std::optional<int> stream_of_ours(const Looked& looked, const DescriptorFacts& facts,
                                  const SavedProcess& program) {
  const FileProof& proof = looked.proof;
  const bool leads_elsewhere = S_ISSOCK(proof.type) || S_ISFIFO(proof.type) ||
                               (S_ISCHR(proof.type) && !is_known_device(looked.name));
  if (!leads_elsewhere) return std::nullopt;
  constexpr std::array kInputFirst{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  constexpr std::array kOutputFirst{STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO};
  // By the name that the controlling terminal has for everybody.
  const bool is_terminal = program.process.has_terminal != 0 && proof.device_number == kOwnTerminal;
  std::optional<int> found;
  for (const int stream : (facts.flags & O_ACCMODE) == O_WRONLY ? kOutputFirst : kInputFirst) {
    FileProof ours;
    if (!prove_known_file(stream, "", ours)) continue;
    const bool is_it = is_terminal ? ::tcgetsid(stream) >= 0
                                   : ours.inode == proof.inode && ours.device == proof.device;
    if (!is_it) continue;
    const unsigned mode = static_cast<unsigned>(::fcntl(stream, F_GETFL)) & O_ACCMODE;
    // A terminal that it has opened itself, only to read (less(1)) or to write, is ours all the
    // same.
    const bool is_as_good = S_ISCHR(proof.type) && mode == O_RDWR;
    if (mode != (facts.flags & O_ACCMODE) && !is_as_good) continue;
    if (!found || stream == facts.number) found = stream;
  }
  return found;
}

// Without asking a server, as all that a save does.
bool look_at(const Ways& ways, const std::string& name, MountTable& mounts, Looked& into) {
  FileProof& proof = into.proof;
  if (!prove_known_file(ways.files.get(), name, proof)) return false;
  into.information = read_proc_in(ways.information.get(), name);
  into.mount = mounts.find(mount_number_in(into.information));
  forget_inode_of_kernel(into.mount, proof);
  return true;
}

Status capture_one(Process& process, const Ways& ways, int number, Readers& readers,
                   SavedDescriptor& saved, const SavedProcess& program) {
  const pid_t leader = process.leader();
  const int handle = ways.handle.get();
  DescriptorFacts& facts = saved.facts;
  facts.number = number;
  facts.same_as = -1;
  Looked looked;
  const std::string name = std::to_string(number);
  if (!look_at(ways, name, readers.mounts, looked))
    return FailedCall{errno, "cannot look at a descriptor"};
  facts.inode = looked.proof.inode;
  facts.device = looked.proof.device;
  facts.flags = static_cast<std::uint32_t>(number_of(field_of(looked.information, "flags"), 8));
  // Of a FIFO or a device that is not open, but named: all that there is of it.
  const bool is_name = (facts.flags & O_PATH) != 0;
  if (is_name || !S_ISSOCK(looked.proof.type))
    looked.name = read_proc_link_in(ways.files.get(), name);
  if (is_name && S_ISSOCK(looked.proof.type)) {
    return cannot_keep(number, looked.name +
                                   ", the name of a UNIX socket (O_PATH), which its server makes "
                                   "anew after a failure; let the program close it");
  }
  if (is_name) return capture_file(looked, readers, saved, program);
  if (const std::optional<int> stream = stream_of_ours(looked, facts, program)) {
    facts.kind = static_cast<std::uint32_t>(DescriptorKind::inherited);
    facts.standard = *stream;
    return {};
  }
  if (S_ISSOCK(looked.proof.type)) {
    const Descriptor socket(static_cast<int>(::syscall(SYS_pidfd_getfd, handle, number, 0)));
    if (!socket.valid()) return FailedCall{errno, "cannot look at a socket"};
    PAWL_TRY(capture_socket(leader, socket.get(), readers, saved));
    const auto kind = static_cast<DescriptorKind>(facts.kind);
    if (kind != DescriptorKind::listening && kind != DescriptorKind::bound) return {};
    const Status named = capture_socket_name(leader, socket.get(), program, readers.mounts,
                                             readers.unix_sockets, facts);
    return named.ok() ? Status{} : cannot_keep(number, named.text());
  }
  if (S_ISFIFO(looked.proof.type)) {
    facts.kind = static_cast<std::uint32_t>(DescriptorKind::pipe);
    if (!looked.name.starts_with("pipe:"))
      return cannot_keep(number, looked.name + " is a named pipe");
    return capture_pipe(leader, handle, number, saved);
  }
  if (looked.name.starts_with("anon_inode:")) return capture_nameless(process, ways, looked, saved);
  if (S_ISCHR(looked.proof.type) && !is_known_device(looked.name))
    return cannot_keep(number, "the device " + looked.name);
  return capture_file(looked, readers, saved, program);
}

// Both ends tell what waits in a pipe, but for one that could not be read.
void share_what_waits(std::vector<SavedDescriptor>& all) {
  const auto is_pipe = [](const SavedDescriptor& saved) {
    return saved.facts.kind == static_cast<std::uint32_t>(DescriptorKind::pipe);
  };
  std::map<std::uint64_t, const SavedDescriptor*> told;
  for (const SavedDescriptor& saved : all) {
    if (is_pipe(saved) && !saved.text.empty()) told.emplace(saved.facts.inode, &saved);
  }
  for (SavedDescriptor& saved : all) {
    if (!is_pipe(saved) || !saved.text.empty()) continue;
    if (const auto found = told.find(saved.facts.inode); found != told.end())
      saved.text = found->second->text;
  }
}

Status find_same(OpenFiles& files, SavedDescriptor& saved) {
  // Those are the supervisor's, whatever the program has opened.
  if (saved.facts.kind == static_cast<std::uint32_t>(DescriptorKind::inherited)) return {};
  const Result<int> same = files.add(saved);
  if (!same.ok()) return same.status();
  saved.facts.same_as = same.value();
  return {};
}

Status too_many(std::size_t fit, std::size_t open) {
  return Status::failure(
      ENOSPC,
      fmt::format("the program has {} descriptors open, and {} of them fill the image of {} "
                  "MiB already, with what they have; let it have fewer open (connections: "
                  "its limit of clients), or less wait in pipes",
                  open, fit, kImageBytes >> 20));
}

}  // namespace

void release_addresses(pid_t leader, const SavedProcess& saved) {
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0)));
  const int on = 1;
  for (const SavedDescriptor& descriptor : saved.descriptors) {
    const DescriptorFacts& facts = descriptor.facts;
    if (facts.kind != static_cast<std::uint32_t>(DescriptorKind::reset) ||
        (facts.domain != AF_INET && facts.domain != AF_INET6))
      continue;
    const Descriptor connection(
        static_cast<int>(::syscall(SYS_pidfd_getfd, handle.get(), facts.number, 0)));
    ::setsockopt(connection.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
}

Status capture_descriptors(Process& process, bool gives_way, SavedProcess& into) {
  const pid_t leader = process.leader();
  const Result<Ways> ways = open_ways(leader);
  if (!ways.ok()) return ways.status();
  Readers readers(leader);
  OpenFiles files(leader);
  const std::vector<int> numbers = numbers_in(fmt::format("/proc/{}/fd", leader));
  std::size_t bytes = 0;
  for (const int number : numbers) {
    if (number == process.calls().descriptor()) continue;
    if (gives_way) PAWL_TRY(process.give_way());
    SavedDescriptor& saved = into.descriptors.emplace_back();
    PAWL_TRY(capture_one(process, ways.value(), number, readers, saved, into));
    PAWL_TRY(find_same(files, saved));
    // Not first when all are read, of which the program may have any number.
    bytes += record_bytes(saved);
    if (bytes > kImageBytes) return too_many(into.descriptors.size() - 1, numbers.size() - 1);
  }
  share_what_waits(into.descriptors);
  return SharedPorts(into).check();
}

}  // namespace pawl::wsp
