#include "wsp/vm/next_machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "medium/descriptor.h"

namespace pawl::wsp::vm {

namespace {

constexpr std::uint64_t kStatBlockBytes = 512;  // of st_blocks, whatever the file system's are

std::string next_path(const MachineDirectory& directory) { return directory.path() + "/next"; }

// What could be reserved if the file `gone` were not there any more.
Result<std::uint64_t> bytes_without(const std::string& gone, const std::string& directory) {
  struct statvfs space{};
  if (::statvfs(directory.c_str(), &space) != 0)
    return FailedCall{errno, "cannot look at the space in " + directory};
  std::uint64_t bytes = space.f_frsize * (::geteuid() == 0 ? space.f_bfree : space.f_bavail);
  struct stat facts{};
  if (::stat(gone.c_str(), &facts) == 0)
    bytes += static_cast<std::uint64_t>(facts.st_blocks) * kStatBlockBytes;
  return bytes;
}

Status no_memory_there(int error_number, const std::string& path) {
  return FailedCall{error_number, "cannot reserve the guest's memory in " + path +
                                      "; give it less (--memory), or more space there"};
}

}  // namespace

Result<MachineDirectory> make_next(const MachineDirectory& directory) {
  forget_next(directory);
  return MachineDirectory::open(next_path(directory), true);
}

Status make_next_memory(const MachineDirectory& directory, const MachineDirectory& next,
                        std::uint64_t bytes) {
  const Result<std::uint64_t> free = bytes_without(directory.memory(), directory.path());
  if (!free.ok()) return free.status();
  if (free.value() < bytes) return no_memory_there(ENOSPC, next.memory());
  const Descriptor memory(
      ::open(next.memory().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!memory.valid() || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
    return FailedCall{errno, "cannot make " + next.memory()};
  return {};
}

Status take_place(const MachineDirectory& directory, const MachineDirectory& next,
                  std::uint64_t memory_bytes) {
  for (const auto& [from, to] :
       {std::pair{next.memory(), directory.memory()},
        std::pair{next.device_state(), directory.device_state()},
        std::pair{next.description(), directory.description()},
        std::pair{next.rehearsal_marker(), directory.rehearsal_marker()}}) {
    if (::rename(from.c_str(), to.c_str()) != 0)
      return FailedCall{errno, "cannot put " + from + " in its place"};
  }
  const Descriptor memory(::open(directory.memory().c_str(), O_RDWR | O_CLOEXEC));
  if (!memory.valid()) return FailedCall{errno, "cannot open " + directory.memory()};
  if (const int error_number = ::posix_fallocate(memory.get(), 0, static_cast<off_t>(memory_bytes));
      error_number != 0)
    return no_memory_there(error_number, directory.memory());
  forget_next(directory);
  return directory.sync();
}

void forget_next(const MachineDirectory& directory) {
  // What cannot be removed keeps the next boot from making it, which says so then.
  std::error_code error;
  std::filesystem::remove_all(next_path(directory), error);
}

}  // namespace pawl::wsp::vm
