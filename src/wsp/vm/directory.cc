#include "wsp/vm/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ctime>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "wsp/clock.h"

namespace pawl::wsp::vm {

namespace {

constexpr timespec kLockPause{0, 5'000'000};

Result<Descriptor> open_lock(const std::string& directory, int flags) {
  Descriptor lock(::open((directory + "/lock").c_str(), flags | O_CLOEXEC, 0600));
  if (!lock.valid()) return FailedCall{errno, "cannot open " + directory + "/lock"};
  return lock;
}

}  // namespace

Result<MachineDirectory> MachineDirectory::open(const std::string& path, bool make) {
  Result<OwnDirectory> directory = OwnDirectory::open(path, make);
  if (!directory.ok()) return directory.status();
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::canonical(path, error);
  if (error) return FailedCall{error.value(), "cannot resolve " + path};
  return MachineDirectory(absolute.string(), std::move(directory.value()));
}

Status MachineDirectory::lock(int wait_ms) {
  Result<Descriptor> opened = open_lock(path_, O_RDWR | O_CREAT);
  if (!opened.ok()) return opened.status();
  const Deadline deadline(wait_ms);
  while (::flock(opened.value().get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FailedCall{errno, "cannot lock " + path_};
    if (deadline.passed())
      return Status::failure(EBUSY, "in use: a machine runs from " + path_ + " already");
    ::nanosleep(&kLockPause, nullptr);
  }
  lock_ = std::move(opened.value());
  return {};
}

Result<bool> MachineDirectory::is_locked() const {
  // A shared lock that is let go at once: two who look do not see each other.
  Result<Descriptor> opened = open_lock(path_, O_RDONLY);
  if (!opened.ok() && opened.status().error_number() == ENOENT) return false;
  if (!opened.ok()) return opened.status();
  if (::flock(opened.value().get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return FailedCall{errno, "cannot look at the lock of " + path_};
}

bool MachineDirectory::has_machine() const {
  for (const std::string& path : {marker(), description()})
    if (::access(path.c_str(), F_OK) == 0) return true;
  return false;
}

Status MachineDirectory::sync() const {
  if (::fsync(directory_.descriptor()) != 0) return FailedCall{errno, "cannot flush " + path_};
  return {};
}

Status make_memory(const std::string& path, std::uint64_t bytes) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return FailedCall{errno, "cannot remove " + path};
  const Descriptor memory(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!memory.valid()) return FailedCall{errno, "cannot make " + path};
  if (const int error_number = ::posix_fallocate(memory.get(), 0, static_cast<off_t>(bytes));
      error_number != 0) {
    ::unlink(path.c_str());
    return FailedCall{error_number, "cannot reserve the guest's memory in " + path +
                                        "; give it less (--memory), or more space there"};
  }
  return {};
}

}  // namespace pawl::wsp::vm
