// Wrappers of the other calls by which the kernel stores into memory, and of those by which a
// program could take SIGSEGV away from the fault tracker; docs/kernel-stores.md lists them.
#include "medium/next_function.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>

#include "medium/readable_memory.h"
#include "track/guarded_vectors.h"
#include "track/kernel_store_guard.h"
#include "track/kernel_stores.h"
#include "track/received_messages.h"
#include "track/segv_handler.h"

// What fortified programs call, and no header declares to others.
extern "C" {
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
char* __getcwd_chk(char*, size_t, size_t);
int __poll_chk(pollfd*, nfds_t, int, size_t);
}

namespace {

using pawl::GuardedVectors;
using pawl::KernelStoreGuard;

// clang-format off: it indents such a list further each time it sees it.
#define PAWL_WRAPPED(X) \
  X(recv) X(__recv_chk) X(recvfrom) X(__recvfrom_chk) X(recvmsg) X(recvmmsg) X(fread) \
  X(fread_unlocked) X(__fread_chk) X(__fread_unlocked_chk) X(getrandom) X(getentropy) X(readlink) \
  X(readlinkat) X(__readlink_chk) X(__readlinkat_chk) X(getcwd) X(__getcwd_chk) X(poll) \
  X(__poll_chk) X(ppoll) X(select) X(pselect) X(epoll_wait) X(epoll_pwait) X(accept) X(accept4) \
  X(getsockname) X(getpeername) X(getsockopt) X(socketpair) X(pipe) X(pipe2) X(wait) X(waitpid) \
  X(wait4) X(waitid) X(uname) X(sysinfo) X(statfs) X(statfs64) X(fstatfs) X(fstatfs64) X(getxattr) \
  X(lgetxattr) X(fgetxattr) X(listxattr) X(llistxattr) X(flistxattr) X(process_vm_readv) \
  X(getrusage)
// clang-format on
PAWL_DEFINE_NEXT_FUNCTIONS(PAWL_WRAPPED)

// A buffer of `count` records, whose product the called function checks itself.
std::size_t product(std::size_t size, std::size_t count) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(size, count, &bytes) ? 0 : bytes;
}

// An address and its length as sockets return them.  Pointers may be wrong, which the call says.
struct AddressGuards {
  AddressGuards(void* address, socklen_t* length)
      : address_guard(address,
                      pawl::kernel_stores_are_tracked() && pawl::is_readable(length, sizeof *length)
                          ? *length
                          : 0),
        length_guard(length, sizeof *length) {}
  KernelStoreGuard address_guard;
  KernelStoreGuard length_guard;
};

struct MessageGuards {
  explicit MessageGuards(msghdr* message)
      : header(message, sizeof *message),
        name(message->msg_name, message->msg_namelen),
        control(message->msg_control, message->msg_controllen),
        vectors(message->msg_iov, message->msg_iovlen) {}
  KernelStoreGuard header;
  KernelStoreGuard name;
  KernelStoreGuard control;
  GuardedVectors vectors;
};

}  // namespace

constinit std::atomic<void (*)(const msghdr&)> pawl::take_received_message{nullptr};

void pawl::link_kernel_stores_other() {}

// Sockets.

PAWL_WRAPPER ssize_t recv(int descriptor, void* buffer, size_t count, int flags) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().recv(descriptor, buffer, count, flags));
}
PAWL_WRAPPER ssize_t __recv_chk(int descriptor, void* buffer, size_t count, size_t size,
                                int flags) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().__recv_chk(descriptor, buffer, count, size, flags));
}
PAWL_WRAPPER ssize_t recvfrom(int descriptor, void* buffer, size_t count, int flags,
                              sockaddr* address, socklen_t* length) {
  KernelStoreGuard guard(buffer, count);
  const AddressGuards address_guards(address, length);
  return guard.stored(next().recvfrom(descriptor, buffer, count, flags, address, length));
}
PAWL_WRAPPER ssize_t __recvfrom_chk(int descriptor, void* buffer, size_t count, size_t size,
                                    int flags, sockaddr* address, socklen_t* length) {
  KernelStoreGuard guard(buffer, count);
  const AddressGuards address_guards(address, length);
  return guard.stored(
      next().__recvfrom_chk(descriptor, buffer, count, size, flags, address, length));
}
PAWL_WRAPPER ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  const auto receive = [&] {
    if (!pawl::kernel_stores_are_tracked() || !pawl::is_readable(message, sizeof *message))
      return next().recvmsg(descriptor, message, flags);
    MessageGuards guards(message);
    return guards.vectors.stored(next().recvmsg(descriptor, message, flags));
  };
  const ssize_t received = receive();
  if (received >= 0) pawl::note_received(*message);
  return received;
}
PAWL_WRAPPER int recvmmsg(int descriptor, mmsghdr* messages, unsigned count, int flags,
                          timespec* timeout) {
  const KernelStoreGuard headers(messages, product(sizeof *messages, count));
  const KernelStoreGuard timeout_guard(timeout, sizeof *timeout);
  // Opened, but not held open while the call blocks: there is no bound to how many there are.
  if (pawl::fault_tracker_in_use() && count <= IOV_MAX && pawl::are_readable(messages, count)) {
    for (unsigned i = 0; i < count; ++i) const MessageGuards guards(&messages[i].msg_hdr);
  }
  const int received = next().recvmmsg(descriptor, messages, count, flags, timeout);
  if (pawl::StoreMarks::in_use()) {
    for (int i = 0; i < received; ++i) {
      MessageGuards guards(&messages[i].msg_hdr);
      (void)guards.vectors.stored(messages[i].msg_len);
    }
  }
  for (int i = 0; i < received; ++i) pawl::note_received(messages[i].msg_hdr);
  return received;
}
PAWL_WRAPPER int accept(int descriptor, sockaddr* address, socklen_t* length) {
  const AddressGuards guards(address, length);
  return next().accept(descriptor, address, length);
}
PAWL_WRAPPER int accept4(int descriptor, sockaddr* address, socklen_t* length, int flags) {
  const AddressGuards guards(address, length);
  return next().accept4(descriptor, address, length, flags);
}
PAWL_WRAPPER int getsockname(int descriptor, sockaddr* address, socklen_t* length) noexcept {
  const AddressGuards guards(address, length);
  return next().getsockname(descriptor, address, length);
}
PAWL_WRAPPER int getpeername(int descriptor, sockaddr* address, socklen_t* length) noexcept {
  const AddressGuards guards(address, length);
  return next().getpeername(descriptor, address, length);
}
PAWL_WRAPPER int getsockopt(int descriptor, int level, int option, void* value,
                            socklen_t* length) noexcept {
  const AddressGuards guards(value, length);
  return next().getsockopt(descriptor, level, option, value, length);
}
PAWL_WRAPPER int socketpair(int domain, int type, int protocol, int* pair) noexcept {
  const KernelStoreGuard guard(pair, 2 * sizeof *pair);
  return next().socketpair(domain, type, protocol, pair);
}
PAWL_WRAPPER int pipe(int* pair) noexcept {
  const KernelStoreGuard guard(pair, 2 * sizeof *pair);
  return next().pipe(pair);
}
PAWL_WRAPPER int pipe2(int* pair, int flags) noexcept {
  const KernelStoreGuard guard(pair, 2 * sizeof *pair);
  return next().pipe2(pair, flags);
}

// Streams: large reads go straight to the program's buffer.

PAWL_WRAPPER size_t fread(void* buffer, size_t size, size_t count, FILE* stream) {
  KernelStoreGuard guard(buffer, product(size, count));
  const size_t items = next().fread(buffer, size, count, stream);
  (void)guard.stored(product(size, items < count ? items + 1 : items));  // a part of one, too
  return items;
}
PAWL_WRAPPER size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream) {
  KernelStoreGuard guard(buffer, product(size, count));
  const size_t items = next().fread_unlocked(buffer, size, count, stream);
  (void)guard.stored(product(size, items < count ? items + 1 : items));  // a part of one, too
  return items;
}
PAWL_WRAPPER size_t __fread_chk(void* buffer, size_t room, size_t size, size_t count,
                                FILE* stream) {
  KernelStoreGuard guard(buffer, product(size, count));
  const size_t items = next().__fread_chk(buffer, room, size, count, stream);
  (void)guard.stored(product(size, items < count ? items + 1 : items));  // a part of one, too
  return items;
}
PAWL_WRAPPER size_t __fread_unlocked_chk(void* buffer, size_t room, size_t size, size_t count,
                                         FILE* stream) {
  KernelStoreGuard guard(buffer, product(size, count));
  const size_t items = next().__fread_unlocked_chk(buffer, room, size, count, stream);
  (void)guard.stored(product(size, items < count ? items + 1 : items));  // a part of one, too
  return items;
}

// Waiting.

PAWL_WRAPPER int poll(pollfd* events, nfds_t count, int timeout) {
  const KernelStoreGuard guard(events, product(sizeof *events, count));
  return next().poll(events, count, timeout);
}
PAWL_WRAPPER int __poll_chk(pollfd* events, nfds_t count, int timeout, size_t size) {
  const KernelStoreGuard guard(events, product(sizeof *events, count));
  return next().__poll_chk(events, count, timeout, size);
}
PAWL_WRAPPER int ppoll(pollfd* events, nfds_t count, const timespec* timeout,
                       const sigset_t* mask) {
  const KernelStoreGuard guard(events, product(sizeof *events, count));
  return next().ppoll(events, count, timeout, mask);
}
PAWL_WRAPPER int select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                        timeval* timeout) {
  const std::size_t bytes = count <= 0 ? 0 : (static_cast<std::size_t>(count) + 63) / 64 * 8;
  const KernelStoreGuard guards[] = {
      {readable, bytes}, {writable, bytes}, {exceptional, bytes}, {timeout, sizeof *timeout}};
  return next().select(count, readable, writable, exceptional, timeout);
}
PAWL_WRAPPER int pselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                         const timespec* timeout, const sigset_t* mask) {
  const std::size_t bytes = count <= 0 ? 0 : (static_cast<std::size_t>(count) + 63) / 64 * 8;
  const KernelStoreGuard guards[] = {{readable, bytes}, {writable, bytes}, {exceptional, bytes}};
  return next().pselect(count, readable, writable, exceptional, timeout, mask);
}
PAWL_WRAPPER int epoll_wait(int descriptor, epoll_event* events, int count, int timeout) {
  const KernelStoreGuard guard(
      events, count <= 0 ? 0 : product(sizeof *events, static_cast<std::size_t>(count)));
  return next().epoll_wait(descriptor, events, count, timeout);
}
PAWL_WRAPPER int epoll_pwait(int descriptor, epoll_event* events, int count, int timeout,
                             const sigset_t* mask) {
  const KernelStoreGuard guard(
      events, count <= 0 ? 0 : product(sizeof *events, static_cast<std::size_t>(count)));
  return next().epoll_pwait(descriptor, events, count, timeout, mask);
}
PAWL_WRAPPER pid_t wait(int* status) {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().wait(status);
}
PAWL_WRAPPER pid_t waitpid(pid_t process, int* status, int options) {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().waitpid(process, status, options);
}
PAWL_WRAPPER pid_t wait4(pid_t process, int* status, int options, rusage* usage) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  const KernelStoreGuard usage_guard(usage, sizeof *usage);
  return next().wait4(process, status, options, usage);
}
PAWL_WRAPPER int waitid(idtype_t kind, id_t id, siginfo_t* info, int options) {
  const KernelStoreGuard guard(info, sizeof *info);
  return next().waitid(kind, id, info, options);
}

// Asking the system.

PAWL_WRAPPER ssize_t getrandom(void* buffer, size_t count, unsigned flags) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().getrandom(buffer, count, flags));
}
PAWL_WRAPPER int getentropy(void* buffer, size_t count) {
  const KernelStoreGuard guard(buffer, count);
  return next().getentropy(buffer, count);
}
PAWL_WRAPPER ssize_t readlink(const char* path, char* buffer, size_t count) noexcept {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().readlink(path, buffer, count));
}
PAWL_WRAPPER ssize_t readlinkat(int directory, const char* path, char* buffer,
                                size_t count) noexcept {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().readlinkat(directory, path, buffer, count));
}
PAWL_WRAPPER ssize_t __readlink_chk(const char* path, char* buffer, size_t count, size_t size) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().__readlink_chk(path, buffer, count, size));
}
PAWL_WRAPPER ssize_t __readlinkat_chk(int directory, const char* path, char* buffer, size_t count,
                                      size_t size) {
  KernelStoreGuard guard(buffer, count);
  return guard.stored(next().__readlinkat_chk(directory, path, buffer, count, size));
}
PAWL_WRAPPER char* getcwd(char* buffer, size_t count) noexcept {
  const KernelStoreGuard guard(buffer, count);
  return next().getcwd(buffer, count);
}
PAWL_WRAPPER char* __getcwd_chk(char* buffer, size_t count, size_t size) {
  const KernelStoreGuard guard(buffer, count);
  return next().__getcwd_chk(buffer, count, size);
}
PAWL_WRAPPER int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  const KernelStoreGuard guard(usage, sizeof *usage);
  return next().getrusage(who, usage);
}
PAWL_WRAPPER int uname(utsname* names) noexcept {
  const KernelStoreGuard guard(names, sizeof *names);
  return next().uname(names);
}
PAWL_WRAPPER int sysinfo(struct sysinfo* information) noexcept {
  const KernelStoreGuard guard(information, sizeof *information);
  return next().sysinfo(information);
}
PAWL_WRAPPER int statfs(const char* path, struct statfs* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().statfs(path, status);
}
PAWL_WRAPPER int statfs64(const char* path, struct statfs64* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().statfs64(path, status);
}
PAWL_WRAPPER int fstatfs(int descriptor, struct statfs* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().fstatfs(descriptor, status);
}
PAWL_WRAPPER int fstatfs64(int descriptor, struct statfs64* status) noexcept {
  const KernelStoreGuard guard(status, sizeof *status);
  return next().fstatfs64(descriptor, status);
}
PAWL_WRAPPER ssize_t getxattr(const char* path, const char* name, void* value,
                              size_t size) noexcept {
  KernelStoreGuard guard(value, size);
  return guard.stored(next().getxattr(path, name, value, size));
}
PAWL_WRAPPER ssize_t lgetxattr(const char* path, const char* name, void* value,
                               size_t size) noexcept {
  KernelStoreGuard guard(value, size);
  return guard.stored(next().lgetxattr(path, name, value, size));
}
PAWL_WRAPPER ssize_t fgetxattr(int descriptor, const char* name, void* value,
                               size_t size) noexcept {
  KernelStoreGuard guard(value, size);
  return guard.stored(next().fgetxattr(descriptor, name, value, size));
}
PAWL_WRAPPER ssize_t listxattr(const char* path, char* list, size_t size) noexcept {
  KernelStoreGuard guard(list, size);
  return guard.stored(next().listxattr(path, list, size));
}
PAWL_WRAPPER ssize_t llistxattr(const char* path, char* list, size_t size) noexcept {
  KernelStoreGuard guard(list, size);
  return guard.stored(next().llistxattr(path, list, size));
}
PAWL_WRAPPER ssize_t flistxattr(int descriptor, char* list, size_t size) noexcept {
  KernelStoreGuard guard(list, size);
  return guard.stored(next().flistxattr(descriptor, list, size));
}
PAWL_WRAPPER ssize_t process_vm_readv(pid_t process, const iovec* local, unsigned long local_count,
                                      const iovec* remote, unsigned long remote_count,
                                      unsigned long flags) noexcept {
  GuardedVectors guard(local, std::size_t{local_count});
  return guard.stored(
      next().process_vm_readv(process, local, local_count, remote, remote_count, flags));
}

// Signals: the tracker's SIGSEGV handler stays in front of the program's, and SIGSEGV unblocked.

PAWL_WRAPPER int sigaction(int signal_number, const struct sigaction* action,
                           struct sigaction* old_action) noexcept {
  return pawl::program_sigaction(signal_number, action, old_action);
}
PAWL_WRAPPER sighandler_t signal(int signal_number, sighandler_t handler) noexcept {
  struct sigaction action{};
  struct sigaction old_action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (pawl::program_sigaction(signal_number, &action, &old_action) != 0) return SIG_ERR;
  return old_action.sa_handler;
}
PAWL_WRAPPER int pthread_sigmask(int how, const sigset_t* set, sigset_t* old_set) noexcept {
  return pawl::program_sigmask(how, set, old_set);
}
PAWL_WRAPPER int sigprocmask(int how, const sigset_t* set, sigset_t* old_set) noexcept {
  const int error_number = pawl::program_sigmask(how, set, old_set);
  if (error_number == 0) return 0;
  errno = error_number;
  return -1;
}
