#include "wsp/vm/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <ctime>

#include <cerrno>

#include "wsp/clock.h"

namespace pawl::wsp::vm {

namespace {

constexpr timespec kLockPause{0, 5'000'000};
constexpr const char* kLockFile = "lock";

}  // namespace

Result<MachineDirectory> MachineDirectory::open(const std::string& path, bool make) {
  Result<OwnDirectory> directory = OwnDirectory::open(path, make);
  if (!directory.ok()) return directory.status();
  return MachineDirectory(std::move(directory.value()));
}

Status MachineDirectory::lock(int wait_ms) {
  Result<Descriptor> opened = directory_.open_file(kLockFile, O_RDWR | O_CREAT);
  if (!opened.ok()) return opened.status();
  const Deadline deadline(wait_ms);
  while (::flock(opened.value().get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FailedCall{errno, "cannot lock " + path()};
    if (deadline.passed())
      return Status::failure(EBUSY, "in use: a machine runs from " + path() + " already");
    ::nanosleep(&kLockPause, nullptr);
  }
  lock_ = std::move(opened.value());
  return {};
}

Result<bool> MachineDirectory::is_locked() const {
  // A shared lock that is let go at once: two who look do not see each other.
  Result<Descriptor> opened = directory_.open_file(kLockFile, O_RDONLY);
  if (!opened.ok() && opened.status().error_number() == ENOENT) return false;
  if (!opened.ok()) return opened.status();
  if (::flock(opened.value().get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return FailedCall{errno, "cannot look at the lock of " + path()};
}

bool MachineDirectory::has_machine() const {
  for (const char* const name : {kMarkerFile, kDescriptionFile})
    if (directory_.has(name)) return true;
  return false;
}

Status MachineDirectory::sync() const {
  if (::fsync(descriptor()) != 0) return FailedCall{errno, "cannot flush " + path()};
  return {};
}

Status make_memory(const MachineDirectory& directory, std::uint64_t bytes) {
  const Result<Descriptor> memory = directory.files().make_file(kMemoryFile);
  if (!memory.ok()) return memory.status();
  if (const int error_number =
          ::posix_fallocate(memory.value().get(), 0, static_cast<off_t>(bytes));
      error_number != 0) {
    ::unlinkat(directory.descriptor(), kMemoryFile, 0);
    return FailedCall{error_number, "cannot reserve the guest's memory in " +
                                        directory.path_of(kMemoryFile) +
                                        "; give it less (--memory), or more space there"};
  }
  return {};
}

}  // namespace pawl::wsp::vm
