// pawl_stored_*: what the system tells: of files, names, processes, users, signals, the network.
#include "track/store_functions.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pwd.h>
#include <regex.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>
#include <wordexp.h>

#include <csignal>

using pawl::stored::mark;
using pawl::stored::mark_array;
using pawl::stored::mark_bytes;
using pawl::stored::mark_count;
using pawl::stored::mark_string;

extern "C" {
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
char* __getcwd_chk(char*, size_t, size_t);
int __gethostname_chk(char*, size_t, size_t);
int __getdomainname_chk(char*, size_t, size_t);
int __ttyname_r_chk(int, char*, size_t, size_t);
int __getlogin_r_chk(char*, size_t, size_t);
size_t __confstr_chk(int, char*, size_t, size_t);
int __getgroups_chk(int, gid_t*, size_t);
}

// Files.

#define PAWL_STORED_STATUS(name, parameters, arguments) \
  PAWL_STORED(int, name, parameters, arguments, mark(to))
PAWL_STORED_STATUS(stat, (const char* path, struct stat* to), (path, to));
PAWL_STORED_STATUS(stat64, (const char* path, struct stat64* to), (path, to));
PAWL_STORED_STATUS(lstat, (const char* path, struct stat* to), (path, to));
PAWL_STORED_STATUS(lstat64, (const char* path, struct stat64* to), (path, to));
PAWL_STORED_STATUS(fstat, (int descriptor, struct stat* to), (descriptor, to));
PAWL_STORED_STATUS(fstat64, (int descriptor, struct stat64* to), (descriptor, to));
PAWL_STORED_STATUS(fstatat, (int directory, const char* path, struct stat* to, int flags),
                   (directory, path, to, flags));
PAWL_STORED_STATUS(fstatat64, (int directory, const char* path, struct stat64* to, int flags),
                   (directory, path, to, flags));
PAWL_STORED_STATUS(statx,
                   (int directory, const char* path, int flags, unsigned mask, struct statx* to),
                   (directory, path, flags, mask, to));
PAWL_STORED_STATUS(statfs, (const char* path, struct statfs* to), (path, to));
PAWL_STORED_STATUS(statfs64, (const char* path, struct statfs64* to), (path, to));
PAWL_STORED_STATUS(fstatfs, (int descriptor, struct statfs* to), (descriptor, to));
PAWL_STORED_STATUS(fstatfs64, (int descriptor, struct statfs64* to), (descriptor, to));
PAWL_STORED_STATUS(statvfs, (const char* path, struct statvfs* to), (path, to));
PAWL_STORED_STATUS(statvfs64, (const char* path, struct statvfs64* to), (path, to));
PAWL_STORED_STATUS(fstatvfs, (int descriptor, struct statvfs* to), (descriptor, to));
PAWL_STORED_STATUS(fstatvfs64, (int descriptor, struct statvfs64* to), (descriptor, to));

PAWL_STORED(ssize_t, readlink, (const char* path, char* to, size_t size), (path, to, size),
            mark_count(to, result));
PAWL_STORED(ssize_t, __readlink_chk, (const char* path, char* to, size_t size, size_t room),
            (path, to, size, room), mark_count(to, result));
PAWL_STORED(ssize_t, readlinkat, (int directory, const char* path, char* to, size_t size),
            (directory, path, to, size), mark_count(to, result));
PAWL_STORED(ssize_t, __readlinkat_chk,
            (int directory, const char* path, char* to, size_t size, size_t room),
            (directory, path, to, size, room), mark_count(to, result));
// Of one that fails, as much as there is room for.
#define PAWL_STORED_DIRECTORY(name, parameters, arguments) \
  PAWL_STORED(char*, name, parameters, arguments, if (result == nullptr) mark_bytes(to, size); \
              else mark_string(to, size))
PAWL_STORED_DIRECTORY(getcwd, (char* to, size_t size), (to, size));
PAWL_STORED_DIRECTORY(__getcwd_chk, (char* to, size_t size, size_t room), (to, size, room));
#define PAWL_STORED_ATTRIBUTE(name, of) \
  PAWL_STORED(ssize_t, name, (of, const char* attribute, void* to, size_t size), \
              (file, attribute, to, size), if (size != 0) mark_count(to, result))
PAWL_STORED_ATTRIBUTE(getxattr, const char* file);
PAWL_STORED_ATTRIBUTE(lgetxattr, const char* file);
PAWL_STORED_ATTRIBUTE(fgetxattr, int file);
#define PAWL_STORED_ATTRIBUTES(name, of) \
  PAWL_STORED(ssize_t, name, (of, char* to, size_t size), (file, to, size), \
              if (size != 0) mark_count(to, result))
PAWL_STORED_ATTRIBUTES(listxattr, const char* file);
PAWL_STORED_ATTRIBUTES(llistxattr, const char* file);
PAWL_STORED_ATTRIBUTES(flistxattr, int file);
PAWL_STORED(ssize_t, getdents64, (int descriptor, void* to, size_t size), (descriptor, to, size),
            mark_count(to, result));
PAWL_STORED(int, scandir,
            (const char* path, dirent*** to, int (*selects)(const dirent*),
             int (*compare)(const dirent**, const dirent**)),
            (path, to, selects, compare), mark(to));
PAWL_STORED(int, scandir64,
            (const char* path, dirent64*** to, int (*selects)(const dirent64*),
             int (*compare)(const dirent64**, const dirent64**)),
            (path, to, selects, compare), mark(to));
// NOLINTBEGIN: they are what programs call
extern "C" int pawl_real_readdir_r(DIR*, dirent*, dirent**) __asm__("readdir_r");
extern "C" int pawl_real_readdir64_r(DIR*, dirent64*, dirent64**) __asm__("readdir64_r");
#define PAWL_STORED_ENTRY_OF_DIRECTORY(name, type) \
  extern "C" PAWL_PUBLIC int pawl_stored_##name(DIR* directory, type* to, type** found) { \
    const int result = pawl_real_##name(directory, to, found); \
    mark(to); \
    mark(found); \
    return result; \
  } \
  static_assert(true)
PAWL_STORED_ENTRY_OF_DIRECTORY(readdir_r, dirent);
PAWL_STORED_ENTRY_OF_DIRECTORY(readdir64_r, dirent64);
// NOLINTEND
PAWL_STORED(int, name_to_handle_at,
            (int directory, const char* path, file_handle* to, int* mount, int flags),
            (directory, path, to, mount, flags), mark(mount);
            mark(to); if (result == 0) mark_bytes(to->f_handle, to->handle_bytes));
PAWL_STORED(int, glob64,
            (const char* pattern, int flags, int (*fails)(const char*, int), glob64_t* to),
            (pattern, flags, fails, to), mark(to));
PAWL_STORED_NOTHING(globfree64, (glob64_t * to), (to), mark(to));
PAWL_STORED(int, glob, (const char* pattern, int flags, int (*fails)(const char*, int), glob_t* to),
            (pattern, flags, fails, to), mark(to));
PAWL_STORED_NOTHING(globfree, (glob_t * to), (to), mark(to));
PAWL_STORED(int, wordexp, (const char* words, wordexp_t* to, int flags), (words, to, flags),
            mark(to));
PAWL_STORED_NOTHING(wordfree, (wordexp_t * to), (to), mark(to));
PAWL_STORED(int, mincore, (void* start, size_t length, unsigned char* to), (start, length, to),
            mark_bytes(to, (length + 4095) / 4096));

// Names.

#define PAWL_STORED_NAME(name, parameters, arguments) \
  PAWL_STORED(int, name, parameters, arguments, mark_string(to, size))
PAWL_STORED_NAME(gethostname, (char* to, size_t size), (to, size));
PAWL_STORED_NAME(__gethostname_chk, (char* to, size_t size, size_t room), (to, size, room));
PAWL_STORED_NAME(getdomainname, (char* to, size_t size), (to, size));
PAWL_STORED_NAME(__getdomainname_chk, (char* to, size_t size, size_t room), (to, size, room));
PAWL_STORED_NAME(ttyname_r, (int descriptor, char* to, size_t size), (descriptor, to, size));
PAWL_STORED_NAME(__ttyname_r_chk, (int descriptor, char* to, size_t size, size_t room),
                 (descriptor, to, size, room));
PAWL_STORED_NAME(getlogin_r, (char* to, size_t size), (to, size));
PAWL_STORED_NAME(__getlogin_r_chk, (char* to, size_t size, size_t room), (to, size, room));
PAWL_STORED(size_t, confstr, (int name, char* to, size_t size), (name, to, size),
            mark_bytes(to, std::min(result, size)));
PAWL_STORED(size_t, __confstr_chk, (int name, char* to, size_t size, size_t room),
            (name, to, size, room), mark_bytes(to, std::min(result, size)));
PAWL_STORED(int, uname, (utsname * to), (to), mark(to));

// Processes and users.

PAWL_STORED(int, posix_spawn,
            (pid_t * to, const char* path, const posix_spawn_file_actions_t* actions,
             const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment),
            (to, path, actions, attributes, arguments, environment), mark(to));
PAWL_STORED(int, posix_spawnp,
            (pid_t * to, const char* file, const posix_spawn_file_actions_t* actions,
             const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment),
            (to, file, actions, attributes, arguments, environment), mark(to));
PAWL_STORED(int, backtrace, (void** to, int count), (to, count), mark_count(to, 8L * result));
PAWL_STORED(int, sysinfo, (struct sysinfo * to), (to), mark(to));
PAWL_STORED(int, getrusage, (__rusage_who_t who, rusage* to), (who, to), mark(to));
PAWL_STORED(int, getrlimit, (__rlimit_resource_t resource, rlimit* to), (resource, to), mark(to));
PAWL_STORED(int, getrlimit64, (__rlimit_resource_t resource, rlimit64* to), (resource, to),
            mark(to));
PAWL_STORED(int, prlimit,
            (pid_t process, __rlimit_resource resource, const rlimit* limit, rlimit* old),
            (process, resource, limit, old), mark(old));
PAWL_STORED(int, prlimit64,
            (pid_t process, __rlimit_resource resource, const rlimit64* limit, rlimit64* old),
            (process, resource, limit, old), mark(old));
PAWL_STORED(int, sched_getparam, (pid_t process, sched_param* to), (process, to), mark(to));
PAWL_STORED(int, sched_getaffinity, (pid_t process, size_t size, cpu_set_t* to),
            (process, size, to), mark_bytes(to, size));
PAWL_STORED(int, sched_rr_get_interval, (pid_t process, timespec* to), (process, to), mark(to));
PAWL_STORED(int, getcpu, (unsigned* processor, unsigned* node), (processor, node), mark(processor);
            mark(node));
PAWL_STORED(int, getgroups, (int count, gid_t* to), (count, to),
            if (count > 0 && result > 0) mark_array(to, static_cast<size_t>(result)));
PAWL_STORED(int, __getgroups_chk, (int count, gid_t* to, size_t room), (count, to, room),
            if (count > 0 && result > 0) mark_array(to, static_cast<size_t>(result)));
extern "C" PAWL_PUBLIC int pawl_stored_getgrouplist(const char* user, gid_t group, gid_t* to,
                                                    int* count) {
  const int room = *count;
  const int result = getgrouplist(user, group, to, count);
  mark_array(to, static_cast<size_t>(std::max(0, std::min(room, *count))));
  mark(count);
  return result;
}
PAWL_STORED(int, getresuid, (uid_t * real, uid_t* effective, uid_t* saved),
            (real, effective, saved), mark(real);
            mark(effective); mark(saved));
PAWL_STORED(int, getresgid, (gid_t * real, gid_t* effective, gid_t* saved),
            (real, effective, saved), mark(real);
            mark(effective); mark(saved));
// What these say stands in the buffer, in some order.
#define PAWL_STORED_ENTRY(name, type, by) \
  PAWL_STORED(int, name, (by, type * to, char* buffer, size_t size, type** found), \
              (key, to, buffer, size, found), mark(to); \
              mark_bytes(buffer, size); mark(found))
PAWL_STORED_ENTRY(getpwnam_r, passwd, const char* key);
PAWL_STORED_ENTRY(getpwuid_r, passwd, uid_t key);
PAWL_STORED_ENTRY(getgrnam_r, group, const char* key);
PAWL_STORED_ENTRY(getgrgid_r, group, gid_t key);
PAWL_STORED_ENTRY(fgetpwent_r, passwd, FILE* key);
PAWL_STORED_ENTRY(fgetgrent_r, group, FILE* key);
#define PAWL_STORED_NEXT_ENTRY(name, type) \
  PAWL_STORED(int, name, (type * to, char* buffer, size_t size, type** found), \
              (to, buffer, size, found), mark(to); \
              mark_bytes(buffer, size); mark(found))
PAWL_STORED_NEXT_ENTRY(getpwent_r, passwd);
PAWL_STORED_NEXT_ENTRY(getgrent_r, group);

// Signals.

PAWL_STORED(int, sigaction, (int number, const struct sigaction* action, struct sigaction* old),
            (number, action, old), mark(old));
PAWL_STORED(int, sigprocmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old),
            mark(old));
PAWL_STORED(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old),
            mark(old));
PAWL_STORED(int, sigaltstack, (const stack_t* stack, stack_t* old), (stack, old), mark(old));
PAWL_STORED(int, sigpending, (sigset_t * to), (to), mark(to));
PAWL_STORED(int, sigwait, (const sigset_t* set, int* to), (set, to), mark(to));
PAWL_STORED(int, sigwaitinfo, (const sigset_t* set, siginfo_t* to), (set, to), mark(to));
PAWL_STORED(int, sigtimedwait, (const sigset_t* set, siginfo_t* to, const timespec* timeout),
            (set, to, timeout), mark(to));
PAWL_STORED(int, sigemptyset, (sigset_t * to), (to), mark(to));
PAWL_STORED(int, sigfillset, (sigset_t * to), (to), mark(to));
PAWL_STORED(int, sigaddset, (sigset_t * to, int number), (to, number), mark(to));
PAWL_STORED(int, sigdelset, (sigset_t * to, int number), (to, number), mark(to));
PAWL_STORED(int, sigorset, (sigset_t * to, const sigset_t* one, const sigset_t* other),
            (to, one, other), mark(to));
PAWL_STORED(int, sigandset, (sigset_t * to, const sigset_t* one, const sigset_t* other),
            (to, one, other), mark(to));

// Terminals.

PAWL_STORED(int, tcgetattr, (int descriptor, termios* to), (descriptor, to), mark(to));
PAWL_STORED_NOTHING(cfmakeraw, (termios * to), (to), mark(to));
PAWL_STORED(int, cfsetspeed, (termios * to, speed_t speed), (to, speed), mark(to));
PAWL_STORED(int, cfsetispeed, (termios * to, speed_t speed), (to, speed), mark(to));
PAWL_STORED(int, cfsetospeed, (termios * to, speed_t speed), (to, speed), mark(to));

// The network.

PAWL_STORED(const char*, inet_ntop, (int family, const void* from, char* to, socklen_t size),
            (family, from, to, size), if (result != nullptr) mark_string(to));
PAWL_STORED(int, inet_pton, (int family, const char* from, void* to), (family, from, to),
            if (result == 1)
                mark_bytes(to, family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr)));
PAWL_STORED(int, inet_aton, (const char* from, in_addr* to), (from, to), mark(to));
PAWL_STORED(ether_addr*, ether_aton_r, (const char* from, ether_addr* to), (from, to), mark(to));
PAWL_STORED(char*, ether_ntoa_r, (const ether_addr* from, char* to), (from, to), mark_string(to));
PAWL_STORED(char*, if_indextoname, (unsigned index, char* to), (index, to),
            mark_bytes(to, IF_NAMESIZE));
PAWL_STORED(int, getifaddrs, (ifaddrs * *to), (to), mark(to));
PAWL_STORED(int, getaddrinfo,
            (const char* node, const char* service, const addrinfo* hints, addrinfo** to),
            (node, service, hints, to), mark(to));
PAWL_STORED(int, getnameinfo,
            (const sockaddr* address, socklen_t length, char* host, socklen_t host_size,
             char* service, socklen_t service_size, int flags),
            (address, length, host, host_size, service, service_size, flags),
            mark_string(host, host_size);
            mark_string(service, service_size));

// Patterns.

PAWL_STORED(int, regcomp, (regex_t * to, const char* pattern, int flags), (to, pattern, flags),
            mark(to));
PAWL_STORED(int, regexec,
            (const regex_t* pattern, const char* text, size_t count, regmatch_t* to, int flags),
            (pattern, text, count, to, flags), mark_array(to, count);
            mark(pattern));
PAWL_STORED(size_t, regerror, (int number, const regex_t* pattern, char* to, size_t size),
            (number, pattern, to, size), mark_bytes(to, std::min(result, size)));
PAWL_STORED_NOTHING(regfree, (regex_t * pattern), (pattern), mark(pattern));

PAWL_STORED(int, dladdr, (const void* address, Dl_info* to), (address, to), mark(to));
PAWL_STORED(int, dladdr1, (const void* address, Dl_info* to, void** more, int what),
            (address, to, more, what), mark(to);
            mark(more));
