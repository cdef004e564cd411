#include "library_prototypes.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <grp.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <math.h>
#include <mqueue.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <sched.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wordexp.h>

#include <algorithm>
#include <map>
#include <string>
#include <type_traits>

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/InstrTypes.h"

namespace pawl::compiler {
namespace {

// A letter for each type as it is passed: the result first, then the parameters.
constexpr char kPointer = 'p';
constexpr char kVoid = 'v';
constexpr char kFloating = 'f';
constexpr char kStruct = 's';  // passed in ways that only the compiler knows
constexpr char kMore = '.';    // any arguments may follow

constexpr char integer_letter(std::size_t bytes) { return static_cast<char>('0' + bytes); }

template <class Type>
constexpr char letter() {
  if (std::is_void_v<Type>) return kVoid;
  if (std::is_pointer_v<Type> || std::is_reference_v<Type>) return kPointer;
  if (std::is_floating_point_v<Type>) return kFloating;
  if constexpr (std::is_integral_v<Type> || std::is_enum_v<Type>) {
    return integer_letter(sizeof(Type));
  }
  return kStruct;
}

template <class Result, class... Parameters>
std::string prototype(Result (*)(Parameters...)) {
  return {letter<Result>(), letter<Parameters>()...};
}
template <class Result, class... Parameters>
std::string prototype(Result (*)(Parameters..., ...)) {
  return {letter<Result>(), letter<Parameters>()..., kMore};
}

// What POSIX, Linux and BSD have besides ISO C.
// clang-format off: it indents such a list further each time it sees it.
#define PAWL_PROTOTYPES(X) \
  X(mempcpy) X(memccpy) X(memfrob) X(bzero) X(explicit_bzero) X(bcopy) X(swab) X(stpcpy) \
  X(stpncpy) X(strxfrm_l) X(strerror_r) X(strfry) X(strtok_r) X(strsep) X(dirname) X(iconv) \
  X(wmempcpy) X(wcpcpy) X(wcpncpy) X(wcsxfrm_l) X(mbsnrtowcs) X(wcsnrtombs) X(asprintf) \
  X(vasprintf) X(dprintf) X(vdprintf) X(fread_unlocked) X(fgets_unlocked) X(fgetws_unlocked) \
  X(getline) X(getdelim) X(fgetpos64) X(ctermid) X(getopt) X(qsort_r) X(strtoq) X(strtouq) \
  X(ecvt_r) X(fcvt_r) X(qecvt_r) X(qfcvt_r) X(rand_r) X(erand48) X(nrand48) X(jrand48) \
  X(drand48_r) X(lrand48_r) X(mrand48_r) X(erand48_r) X(nrand48_r) X(jrand48_r) X(srand48_r) \
  X(mkstemp) X(mkstemp64) X(mkstemps) X(mkstemps64) X(mkostemp) X(mkostemp64) X(mkostemps) \
  X(mkostemps64) X(mkdtemp) X(realpath) X(ptsname_r) X(getsubopt) X(getopt_long) \
  X(getopt_long_only) X(posix_memalign) X(getloadavg) X(lsearch) X(tsearch) X(tdelete) \
  X(hsearch_r) X(hcreate_r) X(hdestroy_r) X(insque) X(remque) X(strtod_l) X(strtof_l) X(strtol_l) \
  X(strtold_l) X(strtoll_l) X(strtoul_l) X(strtoull_l) X(wcstod_l) X(wcstof_l) X(wcstold_l) \
  X(sincos) X(sincosf) X(sincosl) X(lgamma_r) X(lgammaf_r) X(lgammal_r) X(times) X(gettimeofday) \
  X(clock_gettime) X(clock_getres) X(clock_getcpuclockid) X(nanosleep) X(clock_nanosleep) \
  X(asctime_r) X(ctime_r) X(timegm) X(timelocal) X(strptime) X(strptime_l) X(getdate_r) \
  X(strftime_l) X(wcsftime_l) X(getitimer) X(setitimer) X(timer_create) X(timer_gettime) \
  X(timer_settime) X(timerfd_gettime) X(timerfd_settime) X(adjtime) X(adjtimex) X(clock_adjtime) \
  X(poll) X(ioctl) X(select) X(sendfile) X(wait) X(fcntl) X(read) X(pread) X(pread64) X(readv) \
  X(preadv) X(preadv64) X(preadv2) X(preadv64v2) X(getrandom) X(getentropy) X(process_vm_readv) \
  X(eventfd_read) X(pipe) X(pipe2) X(sendfile64) X(copy_file_range) X(splice) X(recv) X(recvfrom) \
  X(recvmsg) X(recvmmsg) X(accept) X(accept4) X(getsockname) X(getpeername) X(getsockopt) \
  X(socketpair) X(ppoll) X(pselect) X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) X(waitpid) \
  X(wait3) X(wait4) X(waitid) X(fcntl64) X(glob) X(stat) X(statfs) X(statvfs) X(sysinfo) \
  X(wordexp) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) X(fstatat64) X(statx) \
  X(statfs64) X(fstatfs) X(fstatfs64) X(statvfs64) X(fstatvfs) X(fstatvfs64) X(readlink) \
  X(readlinkat) X(getcwd) X(getxattr) X(lgetxattr) X(fgetxattr) X(listxattr) X(llistxattr) \
  X(flistxattr) X(getdents64) X(scandir) X(globfree) X(wordfree) X(mincore) X(gethostname) \
  X(getdomainname) X(ttyname_r) X(getlogin_r) X(confstr) X(uname) X(getrusage) X(getrlimit) \
  X(getrlimit64) X(prlimit) X(prlimit64) X(sched_getparam) X(sched_getaffinity) \
  X(sched_rr_get_interval) X(getcpu) X(getgroups) X(getgrouplist) X(getresuid) X(getresgid) \
  X(getpwnam_r) X(getpwuid_r) X(getgrnam_r) X(getgrgid_r) X(sigaction) X(sigprocmask) \
  X(sigaltstack) X(sigpending) X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(sigemptyset) \
  X(sigfillset) X(sigaddset) X(sigdelset) X(sigorset) X(sigandset) X(tcgetattr) X(cfmakeraw) \
  X(cfsetspeed) X(cfsetispeed) X(cfsetospeed) X(inet_ntop) X(inet_pton) X(inet_aton) \
  X(if_indextoname) X(getifaddrs) X(getaddrinfo) X(getnameinfo) X(regcomp) X(regexec) X(regerror) \
  X(regfree) X(dladdr) X(sem_init) X(sem_destroy) X(sem_wait) X(sem_trywait) X(sem_timedwait) \
  X(sem_clockwait) X(sem_post) X(sem_getvalue) X(strdup) X(strndup) X(wcsdup) X(wcstoq) X(wcstouq) \
  X(wcstol_l) X(wcstoul_l) X(wcstoll_l) X(wcstoull_l) X(gcvt) X(qgcvt) X(mq_receive) \
  X(mq_timedreceive) X(mq_getattr) X(mq_setattr) X(msgrcv) X(msgctl) X(shmctl) X(sendmmsg) \
  X(scandir64) X(name_to_handle_at) X(glob64) X(globfree64) X(posix_spawn) X(posix_spawnp) \
  X(backtrace) X(seed48_r) X(lcong48_r) X(ntp_adjtime) X(getpwent_r) X(getgrent_r) \
  X(fgetpwent_r) X(fgetgrent_r) X(ether_aton_r) X(ether_ntoa_r) X(dladdr1) X(canonicalize) \
  X(canonicalizef) X(canonicalizel) X(setpayload) X(setpayloadf) X(setpayloadl) \
  X(setpayloadsig) X(setpayloadsigf) X(setpayloadsigl)
// clang-format on

const std::map<llvm::StringRef, std::string>& prototypes() {
  static const std::map<llvm::StringRef, std::string> known = {
#define PAWL_PROTOTYPE(name) {#name, prototype(&::name)},
      PAWL_PROTOTYPES(PAWL_PROTOTYPE)
#undef PAWL_PROTOTYPE
      // Of later C libraries than this one.
      {"strlcpy", "8pp8"},
      {"strlcat", "8pp8"},
      {"arc4random_buf", "vp8"},
      {"mbrtoc8", "8pp8p"},
      {"c8rtomb", "8p1p"},
      // The symbol of ntp_gettime().
      {"ntp_gettimex", "4p"},
      // Of which the linker would warn.
      {"readdir_r", "4ppp"},
      {"readdir64_r", "4ppp"},
  };
  return known;
}

char letter_of(const llvm::Type* type) {
  if (type->isVoidTy()) return kVoid;
  if (type->isPointerTy()) return kPointer;
  if (type->isFloatingPointTy()) return kFloating;
  if (type->isIntegerTy()) return integer_letter((type->getIntegerBitWidth() + 7) / 8);
  return kStruct;
}

std::string prototype_of(const llvm::FunctionType& type) {
  std::string letters{letter_of(type.getReturnType())};
  for (const llvm::Type* parameter : type.params()) letters += letter_of(parameter);
  if (type.isVarArg()) letters += kMore;
  return letters;
}

// `int read();`, as old programs declare it, and then a call with its arguments.
bool is_called_like(const llvm::Function& function, const std::string& expected) {
  return llvm::any_of(function.users(), [&](const llvm::User* user) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
    if (call == nullptr || call->getCalledOperand() != &function) return false;
    std::string letters;
    for (const llvm::Value* argument : call->args()) letters += letter_of(argument->getType());
    return letters == expected.substr(1);
  });
}

}  // namespace

bool is_declared_as_library(const llvm::Function& function, llvm::StringRef name) {
  const auto known = prototypes().find(name);
  if (known == prototypes().end()) return true;
  const std::string& expected = known->second;
  if (llvm::is_contained(expected, kStruct)) return true;
  const llvm::FunctionType& type = *function.getFunctionType();
  if (prototype_of(type) == expected) return true;
  return type.isVarArg() && type.getNumParams() == 0 && is_called_like(function, expected);
}

}  // namespace pawl::compiler
