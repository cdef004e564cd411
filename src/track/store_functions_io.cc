// pawl_stored_*: reading from descriptors and sockets, and waiting for them.
#include "track/store_functions.h"

#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <cstdarg>

using pawl::stored::mark;
using pawl::stored::mark_array;
using pawl::stored::mark_bytes;
using pawl::stored::mark_vectors;

extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
int __poll_chk(pollfd*, nfds_t, int, size_t);
int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);
}

namespace {

// Of a call that failed in the middle, some of it may be there.
bool stored_nevertheless() { return errno == EIO || errno == EFAULT; }

void mark_read(const void* to, size_t count, ssize_t result) {
  if (result >= 0)
    mark_bytes(to, std::min(count, static_cast<size_t>(result)));
  else if (stored_nevertheless())
    mark_bytes(to, count);
}

// What is behind the pointer, which may be the one that the call could not read.
bool read_vector(const iovec* at, iovec& vector) {
  const iovec here{&vector, sizeof vector};
  const iovec there{const_cast<iovec*>(at), sizeof vector};
  return process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == sizeof vector;
}
void mark_read(const iovec* vectors, int count, ssize_t result) {
  if (result >= 0)
    return mark_vectors(vectors, static_cast<size_t>(count), static_cast<size_t>(result));
  if (!stored_nevertheless()) return;
  const int error_number = errno;
  iovec vector{};
  for (int i = 0; i < count && read_vector(vectors + i, vector); ++i)
    mark_bytes(vector.iov_base, vector.iov_len);
  errno = error_number;
}

// An address that a call has returned.  Before the call nothing may be read, for the pointers may
// be wrong, which the call says.  It says how long the address is, also where it was cut to the
// room.
void mark_address(const void* address, const socklen_t* length) {
  if (length == nullptr) return;
  mark(length);
  mark_bytes(address, *length);
}

void mark_message(const msghdr& message, size_t bytes) {
  mark(&message);
  mark_bytes(message.msg_name, message.msg_namelen);
  mark_bytes(message.msg_control, message.msg_controllen);
  mark_vectors(message.msg_iov, message.msg_iovlen, bytes);
}

}  // namespace

#define PAWL_STORED_READ(name, parameters, arguments) \
  PAWL_STORED(ssize_t, name, parameters, arguments, mark_read(to, count, result))
PAWL_STORED_READ(read, (int descriptor, void* to, size_t count), (descriptor, to, count));
PAWL_STORED_READ(__read_chk, (int descriptor, void* to, size_t count, size_t room),
                 (descriptor, to, count, room));
PAWL_STORED_READ(pread, (int descriptor, void* to, size_t count, off_t offset),
                 (descriptor, to, count, offset));
PAWL_STORED_READ(__pread_chk, (int descriptor, void* to, size_t count, off_t offset, size_t room),
                 (descriptor, to, count, offset, room));
PAWL_STORED_READ(pread64, (int descriptor, void* to, size_t count, off64_t offset),
                 (descriptor, to, count, offset));
PAWL_STORED_READ(__pread64_chk,
                 (int descriptor, void* to, size_t count, off64_t offset, size_t room),
                 (descriptor, to, count, offset, room));
PAWL_STORED_READ(readv, (int descriptor, const iovec* to, int count), (descriptor, to, count));
PAWL_STORED_READ(preadv, (int descriptor, const iovec* to, int count, off_t offset),
                 (descriptor, to, count, offset));
PAWL_STORED_READ(preadv64, (int descriptor, const iovec* to, int count, off64_t offset),
                 (descriptor, to, count, offset));
PAWL_STORED_READ(preadv2, (int descriptor, const iovec* to, int count, off_t offset, int flags),
                 (descriptor, to, count, offset, flags));
PAWL_STORED_READ(preadv64v2,
                 (int descriptor, const iovec* to, int count, off64_t offset, int flags),
                 (descriptor, to, count, offset, flags));
PAWL_STORED_READ(getrandom, (void* to, size_t count, unsigned flags), (to, count, flags));
PAWL_STORED(int, getentropy, (void* to, size_t count), (to, count), mark_bytes(to, count));
PAWL_STORED(ssize_t, process_vm_readv,
            (pid_t process, const iovec* to, unsigned long count, const iovec* from,
             unsigned long from_count, unsigned long flags),
            (process, to, count, from, from_count, flags),
            mark_read(to, static_cast<int>(count), result));
PAWL_STORED(int, eventfd_read, (int descriptor, eventfd_t* to), (descriptor, to), mark(to));
PAWL_STORED(int, pipe, (int to[2]), (to), mark_array(to, 2));
PAWL_STORED(int, pipe2, (int to[2], int flags), (to, flags), mark_array(to, 2));

// Offsets that move on.
PAWL_STORED(ssize_t, sendfile, (int to, int from, off_t* offset, size_t count),
            (to, from, offset, count), mark(offset));
PAWL_STORED(ssize_t, sendfile64, (int to, int from, off64_t* offset, size_t count),
            (to, from, offset, count), mark(offset));
PAWL_STORED(ssize_t, copy_file_range,
            (int from, off64_t* from_offset, int to, off64_t* to_offset, size_t count,
             unsigned flags),
            (from, from_offset, to, to_offset, count, flags), mark(from_offset);
            mark(to_offset));
PAWL_STORED(ssize_t, splice,
            (int from, off64_t* from_offset, int to, off64_t* to_offset, size_t count,
             unsigned flags),
            (from, from_offset, to, to_offset, count, flags), mark(from_offset);
            mark(to_offset));

// Sockets.

PAWL_STORED_READ(recv, (int descriptor, void* to, size_t count, int flags),
                 (descriptor, to, count, flags));
PAWL_STORED_READ(__recv_chk, (int descriptor, void* to, size_t count, size_t room, int flags),
                 (descriptor, to, count, room, flags));
extern "C" PAWL_PUBLIC ssize_t pawl_stored_recvfrom(int descriptor, void* to, size_t count,
                                                    int flags, sockaddr* address,
                                                    socklen_t* length) {
  const ssize_t result = recvfrom(descriptor, to, count, flags, address, length);
  mark_read(to, count, result);
  if (result >= 0) mark_address(address, length);
  return result;
}
extern "C" PAWL_PUBLIC ssize_t pawl_stored___recvfrom_chk(int descriptor, void* to, size_t count,
                                                          size_t size, int flags, sockaddr* address,
                                                          socklen_t* length) {
  const ssize_t result = __recvfrom_chk(descriptor, to, count, size, flags, address, length);
  mark_read(to, count, result);
  if (result >= 0) mark_address(address, length);
  return result;
}
PAWL_STORED(ssize_t, recvmsg, (int descriptor, msghdr* to, int flags), (descriptor, to, flags),
            if (result >= 0) mark_message(*to, static_cast<size_t>(result)));
PAWL_STORED(
    int, recvmmsg, (int descriptor, mmsghdr* to, unsigned count, int flags, timespec* timeout),
    (descriptor, to, count, flags, timeout), for (int i = 0; i < result; ++i) {
      mark(&to[i]);
      mark_message(to[i].msg_hdr, to[i].msg_len);
    } mark(timeout));

PAWL_STORED(int, sendmmsg, (int descriptor, mmsghdr* messages, unsigned count, int flags),
            (descriptor, messages, count, flags),
            for (int i = 0; i < result; ++i) mark(&messages[i].msg_len));

#define PAWL_STORED_ADDRESS(name, parameters, arguments) \
  extern "C" PAWL_PUBLIC int pawl_stored_##name parameters { \
    const int result = name arguments; \
    if (result >= 0) mark_address(to, length); \
    return result; \
  } \
  static_assert(true)
PAWL_STORED_ADDRESS(accept, (int descriptor, sockaddr* to, socklen_t* length),
                    (descriptor, to, length));
PAWL_STORED_ADDRESS(accept4, (int descriptor, sockaddr* to, socklen_t* length, int flags),
                    (descriptor, to, length, flags));
PAWL_STORED_ADDRESS(getsockname, (int descriptor, sockaddr* to, socklen_t* length),
                    (descriptor, to, length));
PAWL_STORED_ADDRESS(getpeername, (int descriptor, sockaddr* to, socklen_t* length),
                    (descriptor, to, length));
PAWL_STORED_ADDRESS(getsockopt,
                    (int descriptor, int level, int option, void* to, socklen_t* length),
                    (descriptor, level, option, to, length));
PAWL_STORED(int, socketpair, (int domain, int type, int protocol, int to[2]),
            (domain, type, protocol, to), mark_array(to, 2));

// Queues of messages.

PAWL_STORED(ssize_t, mq_receive, (mqd_t queue, char* to, size_t count, unsigned* priority),
            (queue, to, count, priority), mark_read(to, count, result);
            mark(priority));
PAWL_STORED(ssize_t, mq_timedreceive,
            (mqd_t queue, char* to, size_t count, unsigned* priority, const timespec* until),
            (queue, to, count, priority, until), mark_read(to, count, result);
            mark(priority));
PAWL_STORED(int, mq_getattr, (mqd_t queue, mq_attr* to), (queue, to), mark(to));
PAWL_STORED(int, mq_setattr, (mqd_t queue, const mq_attr* attributes, mq_attr* old),
            (queue, attributes, old), mark(old));
// The type of the message stands before its text.
PAWL_STORED(ssize_t, msgrcv, (int queue, void* to, size_t count, long type, int flags),
            (queue, to, count, type, flags),
            mark_read(to, count + sizeof type,
                      result < 0 ? result : result + static_cast<ssize_t>(sizeof type)));
PAWL_STORED(int, msgctl, (int queue, int command, msqid_ds* to), (queue, command, to), mark(to));
PAWL_STORED(int, shmctl, (int segment, int command, shmid_ds* to), (segment, command, to),
            mark(to));

// Waiting.

namespace {

void mark_set(const fd_set* set, int count) {
  if (count > 0) mark_bytes(set, (static_cast<size_t>(count) + 63) / 64 * 8);
}

}  // namespace

PAWL_STORED(int, poll, (pollfd * to, nfds_t count, int timeout), (to, count, timeout),
            mark_array(to, count));
PAWL_STORED(int, __poll_chk, (pollfd * to, nfds_t count, int timeout, size_t room),
            (to, count, timeout, room), mark_array(to, count));
PAWL_STORED(int, ppoll, (pollfd * to, nfds_t count, const timespec* timeout, const sigset_t* mask),
            (to, count, timeout, mask), mark_array(to, count));
PAWL_STORED(int, __ppoll_chk,
            (pollfd * to, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t room),
            (to, count, timeout, mask, room), mark_array(to, count));
PAWL_STORED(int, select,
            (int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout),
            (count, readable, writable, exceptional, timeout), mark_set(readable, count);
            mark_set(writable, count); mark_set(exceptional, count); mark(timeout));
PAWL_STORED(int, pselect,
            (int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
             const timespec* timeout, const sigset_t* mask),
            (count, readable, writable, exceptional, timeout, mask), mark_set(readable, count);
            mark_set(writable, count); mark_set(exceptional, count));
PAWL_STORED(int, epoll_wait, (int descriptor, epoll_event* to, int count, int timeout),
            (descriptor, to, count, timeout),
            if (result > 0) mark_array(to, static_cast<size_t>(result)));
PAWL_STORED(int, epoll_pwait,
            (int descriptor, epoll_event* to, int count, int timeout, const sigset_t* mask),
            (descriptor, to, count, timeout, mask),
            if (result > 0) mark_array(to, static_cast<size_t>(result)));
PAWL_STORED(int, epoll_pwait2,
            (int descriptor, epoll_event* to, int count, const timespec* timeout,
             const sigset_t* mask),
            (descriptor, to, count, timeout, mask),
            if (result > 0) mark_array(to, static_cast<size_t>(result)));
PAWL_STORED(pid_t, wait, (int* status), (status), mark(status));
PAWL_STORED(pid_t, waitpid, (pid_t process, int* status, int options), (process, status, options),
            mark(status));
PAWL_STORED(pid_t, wait3, (int* status, int options, rusage* usage), (status, options, usage),
            mark(status);
            mark(usage));
PAWL_STORED(pid_t, wait4, (pid_t process, int* status, int options, rusage* usage),
            (process, status, options, usage), mark(status);
            mark(usage));
PAWL_STORED(int, waitid, (idtype_t kind, id_t id, siginfo_t* to, int options),
            (kind, id, to, options), mark(to));

// Calls whose last argument may lead to anything.

namespace {

// As much as the request says; the old ones, which do not, have structures smaller than this.
constexpr size_t kOldRequestBytes = 256;

}  // namespace

extern "C" PAWL_PUBLIC int pawl_stored_ioctl(int descriptor, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  const int result = ioctl(descriptor, request, argument);
  const size_t named = _IOC_SIZE(request);
  const bool says_size = (_IOC_DIR(request) & (_IOC_READ | _IOC_WRITE)) != 0 && named != 0;
  mark_bytes(argument, says_size ? named : kOldRequestBytes);
  return result;
}

namespace {

template <class Function>
int mark_fcntl(Function function, int descriptor, int command, void* argument) {
  const int result = function(descriptor, command, argument);
  switch (command) {
    case F_GETLK:
    case F_OFD_GETLK:
      mark(static_cast<const struct flock*>(argument));
      break;
    case F_GETOWN_EX:
      mark(static_cast<const f_owner_ex*>(argument));
      break;
    case F_GET_RW_HINT:
    case F_GET_FILE_RW_HINT:
      mark(static_cast<const uint64_t*>(argument));
      break;
    default:
      break;
  }
  return result;
}

}  // namespace

extern "C" PAWL_PUBLIC int pawl_stored_fcntl(int descriptor, int command, ...) {
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  return mark_fcntl(fcntl, descriptor, command, argument);
}
extern "C" PAWL_PUBLIC int pawl_stored_fcntl64(int descriptor, int command, ...) {
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  return mark_fcntl(fcntl64, descriptor, command, argument);
}
