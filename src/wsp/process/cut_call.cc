#include "wsp/process/cut_call.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <tuple>

#include "medium/descriptor.h"
#include "wsp/process/file_proof.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kOutsideOfCalls = ~0ULL;
constexpr std::uint64_t kNoOffset = ~0ULL;      // of pwritev2(2): as writev(2)
constexpr std::uint64_t kInstructionBytes = 2;  // of `syscall`
// What a stopped call returns inside of the kernel: ERESTARTSYS and its kin.
constexpr std::int64_t kRestartMin = -516;
constexpr std::int64_t kRestartMax = -512;
constexpr std::int64_t kRestartIfNoHandler = -514;  // ERESTARTNOHAND
constexpr std::int64_t kRestartByBlock = -516;      // ERESTART_RESTARTBLOCK

// What a descriptor of the program's is, as far as the calls differ by it.
enum class FileKind { other, pipe_or_terminal, stream, unix_stream, packets };

FileKind kind_of_file(pid_t process, std::uint64_t number) {
  // A file that a server has is neither asked nor opened: to close it would wait for the server.
  FileProof proof;
  if (!prove_known_file(AT_FDCWD, fmt::format("/proc/{}/fd/{}", process, static_cast<int>(number)),
                        proof))
    return FileKind::other;
  if (S_ISFIFO(proof.type) || S_ISCHR(proof.type)) return FileKind::pipe_or_terminal;
  if (!S_ISSOCK(proof.type)) return FileKind::other;
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!handle.valid()) return FileKind::other;
  const Descriptor file(
      static_cast<int>(::syscall(SYS_pidfd_getfd, handle.get(), static_cast<int>(number), 0)));
  if (!file.valid()) return FileKind::other;
  int type = 0;
  socklen_t bytes = sizeof(type);
  if (::getsockopt(file.get(), SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) return FileKind::other;
  if (type != SOCK_STREAM) return FileKind::packets;
  int domain = 0;
  bytes = sizeof(domain);
  return ::getsockopt(file.get(), SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX
             ? FileKind::unix_stream
             : FileKind::stream;
}

// Whether the call waits until all is done, where it is allowed to wait, and others can do the rest
// of it.
bool can_be_completed(std::uint64_t call, FileKind file, bool has_control) {
  const bool is_stream = file == FileKind::stream || file == FileKind::unix_stream;
  switch (call) {
    case SYS_recvmmsg:
    case SYS_sendmmsg:
      // Of a stream, the last message may have been cut: the next would follow a part of it.
      return file == FileKind::packets;
    case SYS_sendfile:  // into a pipe it ends when that is full
      return is_stream;
    case SYS_recvmsg:
      // What comes with the rest (a descriptor, a time) would find no place.
      return file == FileKind::stream && !has_control;
    case SYS_sendmsg:
      // Descriptors have gone with the first part; what else is asked for concerns the last.
      return file == FileKind::unix_stream || (file == FileKind::stream && !has_control);
    default:
      return is_stream || file == FileKind::pipe_or_terminal;
  }
}

// Those that answer EINTR when a thread is only stopped and goes on (signal(7)): made again, as the
// program would not know why they end.
bool ends_when_stopped(std::uint64_t number) {
  switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_fallocate:  // on tmpfs (Linux 6.1), which takes back what it did
    // Of sockets with SO_RCVTIMEO or SO_SNDTIMEO.
    case SYS_read:
    case SYS_readv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
      return true;
    default:
      return false;
  }
}

bool waits_by_block(const tracing::Registers& registers) {
  return static_cast<std::int64_t>(registers.orig_rax) >= 0 &&
         static_cast<std::int64_t>(registers.rax) == kRestartByBlock;
}

// The kernel leaves them as they were, but for the call's number.
bool is_at_same_call(const tracing::Registers& one, const tracing::Registers& other) {
  const auto known = [](const tracing::Registers& at) {
    return std::tie(at.rip, at.rsp, at.rdi, at.rsi, at.rdx, at.r10, at.r8, at.r9);
  };
  return known(one) == known(other);
}

// With those flags the kernel takes no more than one packet, or a byte.
bool waits_for_all(std::uint64_t flags) {
  constexpr std::uint64_t kOneAtMost = MSG_PEEK | MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB;
  return (flags & MSG_WAITALL) != 0 && (flags & kOneAtMost) == 0;
}

// Of calls without copies the program counts the answers, one for each.
bool sends_copies(std::uint64_t flags) { return (flags & MSG_ZEROCOPY) == 0; }

}  // namespace

void make_restartable(tracing::Registers& registers) {
  if (static_cast<std::int64_t>(registers.orig_rax) < 0) return;
  if (static_cast<std::int64_t>(registers.rax) == -EINTR && ends_when_stopped(registers.orig_rax))
    registers.rax = static_cast<std::uint64_t>(kRestartIfNoHandler);
}

void NotedWait::note(const tracing::Registers& at_stop) {
  if (waits_by_block(at_stop) && at_stop.orig_rax != SYS_restart_syscall) call_ = at_stop;
}

void NotedWait::begin_anew(tracing::Registers& registers) const {
  if (!waits_by_block(registers)) return;
  if (registers.orig_rax == SYS_restart_syscall && call_ && is_at_same_call(*call_, registers))
    registers.orig_rax = call_->orig_rax;
  registers.rax = static_cast<std::uint64_t>(kRestartIfNoHandler);
}

bool may_be_ended(const tracing::Registers& registers) {
  const auto result = static_cast<std::int64_t>(registers.rax);
  return static_cast<std::int64_t>(registers.orig_rax) >= 0 && (result > 0 || result == -EINTR);
}

std::optional<CutCall> CutCall::of(pid_t process, ProgramMemory& memory,
                                   const tracing::Registers& at_end) {
  if (!may_be_ended(at_end) || static_cast<std::int64_t>(at_end.rax) < 0) return std::nullopt;
  CutCall cut(at_end);
  if (!cut.read_call(memory)) return std::nullopt;
  cut.leave_out(at_end.rax);
  cut.done_ = at_end.rax;
  if (cut.pieces_.empty() ||
      !can_be_completed(at_end.orig_rax, kind_of_file(process, at_end.rdi), cut.has_control_))
    return std::nullopt;
  return cut;
}

bool CutCall::read_call(ProgramMemory& memory) {
  const tracing::Registers& call = original_;
  switch (call.orig_rax) {
    case SYS_write:
      pieces_ = {{call.rsi, call.rdx}};
      return true;
    case SYS_sendto:
      pieces_ = {{call.rsi, call.rdx}};
      return sends_copies(call.r10);
    case SYS_recvfrom:
      pieces_ = {{call.rsi, call.rdx}};
      return waits_for_all(call.r10);
    case SYS_sendfile:
      pieces_ = {{0, call.r10}};
      return true;
    case SYS_writev:
    case SYS_pwritev2:
      if (call.orig_rax == SYS_pwritev2 && (call.r10 != kNoOffset || call.r9 != 0)) return false;
      call_.orig_rax = SYS_write;
      return read_vector(memory, call.rsi, call.rdx);
    case SYS_sendmsg:
      return sends_copies(call.rdx) && read_message(memory, call.rsi, SYS_sendto, call.rdx);
    case SYS_recvmsg:
      return waits_for_all(call.rdx) && read_message(memory, call.rsi, SYS_recvfrom, call.rdx);
    case SYS_recvmmsg:
    case SYS_sendmmsg:
      unit_ = Unit::messages;
      pieces_ = {{call.rsi, call.rdx}};
      // Else it may have ended by itself.
      return call.orig_rax == SYS_sendmmsg ||
             ((call.r10 & (MSG_WAITFORONE | MSG_DONTWAIT | MSG_ERRQUEUE)) == 0 && call.r8 == 0);
    default:
      return false;
  }
}

bool CutCall::read_message(ProgramMemory& memory, std::uint64_t header, long number,
                           std::uint64_t flags) {
  const auto message = memory.read_object<msghdr>(header);
  if (!message) return false;
  call_.orig_rax = static_cast<std::uint64_t>(number);
  call_.r10 = flags;
  call_.r8 = call_.r9 = 0;
  has_control_ = message->msg_control != nullptr;
  return read_vector(memory, reinterpret_cast<std::uint64_t>(message->msg_iov),
                     message->msg_iovlen);
}

bool CutCall::read_vector(ProgramMemory& memory, std::uint64_t place, std::uint64_t count) {
  if (count > IOV_MAX) return false;
  std::vector<iovec> vector(count);
  if (!memory.read(place, vector.data(), count * sizeof(iovec))) return false;
  for (const iovec& one : vector) {
    if (one.iov_len != 0)
      pieces_.push_back({reinterpret_cast<std::uint64_t>(one.iov_base), one.iov_len});
  }
  return true;
}

void CutCall::leave_out(std::uint64_t count) {
  const std::uint64_t bytes = unit_ == Unit::messages ? sizeof(mmsghdr) : 1;
  while (count > 0 && !pieces_.empty()) {
    Piece& first = pieces_.front();
    const std::uint64_t part = std::min(count, first.count);
    first.place += part * bytes;
    first.count -= part;
    count -= part;
    if (first.count == 0) pieces_.erase(pieces_.begin());
  }
}

tracing::Registers CutCall::next() const {
  tracing::Registers registers = call_;
  if (call_.orig_rax == SYS_sendfile) {
    registers.r10 = pieces_.front().count;
  } else {
    registers.rsi = pieces_.front().place;
    registers.rdx = pieces_.front().count;
  }
  registers.rax = call_.orig_rax;
  registers.orig_rax = kOutsideOfCalls;
  registers.rip -= kInstructionBytes;
  return registers;
}

tracing::Registers CutCall::ended() const {
  tracing::Registers registers = original_;
  registers.rax = done_;
  registers.orig_rax = kOutsideOfCalls;
  return registers;
}

bool CutCall::take(std::uint64_t result) {
  has_begun_ = false;
  const auto answer = static_cast<std::int64_t>(result);
  // A signal for which it has a handler is seen when it is delivered.
  if ((answer >= kRestartMin && answer <= kRestartMax) || answer == -EINTR) return true;
  if (answer <= 0) return false;
  leave_out(result);
  done_ += result;
  return !pieces_.empty();
}

}  // namespace pawl::wsp
