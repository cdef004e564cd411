#include "wsp/vm/qemu_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

namespace pawl::wsp::vm {

namespace {

constexpr int kCannotStart = 127;

// In the child: only what may be called between fork() and exec().
[[noreturn]] void become(char* const* arguments, const std::vector<int>& passed, pid_t parent,
                         int complaint) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have died before that was asked for.
  if (::getppid() == parent) {
    for (const int descriptor : passed) ::fcntl(descriptor, F_SETFD, 0);
    ::execvp(arguments[0], arguments);
  }
  const int error_number = errno;
  (void)!::write(complaint, &error_number, sizeof error_number);
  ::_exit(kCannotStart);
}

}  // namespace

Result<QemuProcess> QemuProcess::start(const std::vector<std::string>& command_line,
                                       const std::vector<int>& passed) {
  std::vector<char*> arguments;
  arguments.reserve(command_line.size() + 1);
  for (const std::string& argument : command_line)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> complaint{};
  if (::pipe2(complaint.data(), O_CLOEXEC) != 0)
    return FailedCall{errno, "cannot start " + command_line.front()};
  const Descriptor hears(complaint[0]);
  Descriptor says(complaint[1]);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPWR}) ::sigaddset(&blocked, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(arguments.data(), passed, parent, says.get());
  if (child < 0) return FailedCall{errno, "cannot start " + command_line.front()};
  says.reset(-1);
  int error_number = 0;
  if (::read(hears.get(), &error_number, sizeof error_number) == ssize_t{sizeof error_number}) {
    ::waitpid(child, nullptr, 0);
    return FailedCall{error_number, "cannot run " + command_line.front()};
  }
  Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  QemuProcess made(child, std::move(handle));
  if (!made.handle_.valid()) return FailedCall{errno, "cannot watch QEMU"};
  return made;
}

QemuProcess::QemuProcess(QemuProcess&& other) noexcept
    : number_(std::exchange(other.number_, -1)),
      handle_(std::move(other.handle_)),
      ended_(other.ended_),
      status_(other.status_) {}

QemuProcess::~QemuProcess() {
  if (number_ <= 0 || ended_) return;
  kill_now();
  wait();
}

void QemuProcess::kill_now() const {
  if (!ended_ && number_ > 0) ::kill(number_, SIGKILL);
}

Result<bool> QemuProcess::has_open(const FileIdentity& file) const {
  const std::string listing = "/proc/" + std::to_string(number_) + "/fd";
  DIR* const opened = ::opendir(listing.c_str());
  if (opened == nullptr) return FailedCall{errno, "cannot look at what QEMU has open"};
  bool found = false;
  while (const dirent* entry = found ? nullptr : ::readdir(opened)) {
    struct stat facts{};
    if (::fstatat(::dirfd(opened), entry->d_name, &facts, 0) != 0) continue;
    found = file.is_device != 0 ? S_ISBLK(facts.st_mode) && facts.st_rdev == file.device
                                : S_ISREG(facts.st_mode) && facts.st_dev == file.device &&
                                      facts.st_ino == file.inode;
  }
  ::closedir(opened);
  return found;
}

int QemuProcess::wait() {
  while (!ended_) {
    const pid_t found = ::waitpid(number_, &status_, 0);
    ended_ = found == number_ || (found < 0 && errno != EINTR);
  }
  return status_;
}

}  // namespace pawl::wsp::vm
