#include "wsp/vm/next_machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "medium/descriptor.h"

namespace pawl::wsp::vm {

namespace {

constexpr std::uint64_t kStatBlockBytes = 512;  // of st_blocks, whatever the file system's are

constexpr const char* kNext = "next";

// What could be reserved if the memory were not there any more.
Result<std::uint64_t> bytes_without_memory(const MachineDirectory& directory) {
  struct statvfs space{};
  if (::fstatvfs(directory.descriptor(), &space) != 0)
    return FailedCall{errno, "cannot look at the space in " + directory.path()};
  std::uint64_t bytes = space.f_frsize * (::geteuid() == 0 ? space.f_bfree : space.f_bavail);
  struct stat facts{};
  if (::fstatat(directory.descriptor(), kMemoryFile, &facts, AT_SYMLINK_NOFOLLOW) == 0)
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
  Result<OwnDirectory> next = directory.files().make_directory(kNext);
  if (!next.ok()) return next.status();
  return MachineDirectory(std::move(next.value()));
}

Status make_next_memory(const MachineDirectory& directory, const MachineDirectory& next,
                        std::uint64_t bytes) {
  const Result<std::uint64_t> free = bytes_without_memory(directory);
  if (!free.ok()) return free.status();
  if (free.value() < bytes) return no_memory_there(ENOSPC, next.path_of(kMemoryFile));
  const Result<Descriptor> memory = next.files().make_file(kMemoryFile);
  if (!memory.ok()) return memory.status();
  if (::ftruncate(memory.value().get(), static_cast<off_t>(bytes)) != 0)
    return FailedCall{errno, "cannot make " + next.path_of(kMemoryFile)};
  return {};
}

Status take_place(const MachineDirectory& directory, const MachineDirectory& next,
                  std::uint64_t memory_bytes) {
  for (const char* const name :
       {kMemoryFile, kDeviceStateFile, kDescriptionFile, kRehearsalMarkerFile}) {
    if (::renameat(next.descriptor(), name, directory.descriptor(), name) != 0)
      return FailedCall{errno, "cannot put " + next.path_of(name) + " in its place"};
  }
  const Result<Descriptor> memory = directory.files().open_file(kMemoryFile, O_RDWR);
  if (!memory.ok()) return memory.status();
  if (const int error_number =
          ::posix_fallocate(memory.value().get(), 0, static_cast<off_t>(memory_bytes));
      error_number != 0)
    return no_memory_there(error_number, directory.path_of(kMemoryFile));
  forget_next(directory);
  return directory.sync();
}

void forget_next(const MachineDirectory& directory) {
  // What cannot be removed keeps the next boot from making it, which says so then.
  directory.files().remove_directory(kNext);
}

}  // namespace pawl::wsp::vm
