// confined PROFILE [--needs FILE] PROGRAM ARGUMENTS...: runs a program as somebody meets Pawl who
// is not root.  Ends with 77 where that one may not read FILE: the source tree may be root's alone.
//
//   user             an ordinary user without groups and capabilities
//   paranoid         the same, where perf_event_open(2) is refused (perf_event_paranoid 3)
//   no-userfaultfd   the same, where userfaultfd(2) is refused
//   container        the same, with what Docker's default filter refuses
//   sandbox          the same, where these and newer calls answer ENOSYS, as old kernels do
//
// Nothing can be gained back (no_new_privs), and nothing of the machine is changed.  Whoever is not
// root stays who he is.  The program gets, in PAWL_TEST_DIR and as its working directory, one that
// is its own; it goes when the program has ended, whose exit status is the answer.
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr uid_t kNobody = 65534;
constexpr int kCannotConfine = 125;
constexpr int kSkipped = 77;

struct Profile {
  std::string_view name;
  int error_number;  // that the calls answer
  std::vector<const char*> refused;
};

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> all = {
      {"user", 0, {}},
      {"paranoid", EACCES, {"perf_event_open"}},
      {"no-userfaultfd", EPERM, {"userfaultfd"}},
      {"container",
       EPERM,
       {"perf_event_open",
        "userfaultfd",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "bpf",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "kcmp",
        "keyctl",
        "add_key",
        "request_key",
        "mount",
        "umount2",
        "move_mount",
        "setns",
        "unshare",
        "name_to_handle_at",
        "open_by_handle_at",
        "quotactl",
        "fanotify_init",
        "personality",
        "mbind",
        "set_mempolicy"}},
      {"sandbox",
       ENOSYS,
       {"perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
        "process_vm_readv", "process_vm_writev", "copy_file_range", "statx", "process_madvise",
        "openat2", "close_range", "clone3"}}};
  return all;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "confined: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(kCannotConfine);
}

void become_nobody() {
  if (::geteuid() != 0) return;
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
      ::setresuid(kNobody, kNobody, kNobody) != 0)
    fail("cannot become another user");
}

void refuse(const Profile& profile) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("cannot set no_new_privs");
  scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) fail("cannot make a filter");
  for (const char* name : profile.refused) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) continue;  // a libseccomp that is older than the call
    const int added = ::seccomp_rule_add(
        filter, SCMP_ACT_ERRNO(static_cast<std::uint16_t>(profile.error_number)), number, 0);
    if (added != 0) {
      errno = -added;
      fail(std::string("cannot refuse ") + name);
    }
  }
  if (const int loaded = ::seccomp_load(filter); loaded != 0) {
    errno = -loaded;
    fail("cannot load the filter");
  }
  ::seccomp_release(filter);
}

// True when the other user can reach it by its name, too: the source tree may be root's alone.
bool is_reachable(const std::string& path, int access) {
  const pid_t child = ::fork();
  if (child == 0) {
    become_nobody();
    ::_exit(::access(path.c_str(), access) == 0 ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

// On a disk, if there is one that the user can reach.
std::string make_directory() {
  const char* const wished = std::getenv("PAWL_TEST_DIR");
  for (const char* parent : {wished, ".", "/var/tmp", "/tmp"}) {
    if (parent == nullptr) continue;
    std::error_code unknown;
    std::string path = std::filesystem::canonical(parent, unknown).string() + "/pawl-test-XXXXXX";
    if (unknown || ::mkdtemp(path.data()) == nullptr) continue;
    if (::geteuid() != 0 ||
        (::chown(path.c_str(), kNobody, kNobody) == 0 && is_reachable(path, W_OK | X_OK)))
      return path;
    ::rmdir(path.c_str());
  }
  fail("no directory that another user can reach");
}

}  // namespace

int main(int count, char** arguments) {
  const Profile* chosen = nullptr;
  for (const Profile& profile : profiles()) {
    if (count > 2 && profile.name == arguments[1]) chosen = &profile;
  }
  if (chosen != nullptr && count > 4 && std::string_view(arguments[2]) == "--needs") {
    if (!is_reachable(arguments[3], R_OK)) {
      std::printf("skipped: another user cannot read %s\n", arguments[3]);
      return kSkipped;
    }
    arguments += 2;
  }
  if (chosen == nullptr) {
    std::fprintf(stderr, "write: confined PROFILE [--needs FILE] PROGRAM ARGUMENTS...\n");
    return kCannotConfine;
  }
  // By a descriptor: nobody else may be able to reach its name.
  const int program = ::open(arguments[2], O_PATH);
  if (program < 0) fail(std::string("cannot open ") + arguments[2]);
  const std::string directory = make_directory();
  const pid_t child = ::fork();
  if (child < 0) fail("cannot fork");
  if (child == 0) {
    if (::chdir(directory.c_str()) != 0) fail("cannot enter " + directory);
    ::setenv("PAWL_TEST_DIR", directory.c_str(), 1);
    become_nobody();
    refuse(*chosen);
    ::syscall(SYS_execveat, program, "", arguments + 2, environ, AT_EMPTY_PATH);
    fail(std::string("cannot run ") + arguments[2]);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
