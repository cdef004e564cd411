#include "wsp/vm/file_identity.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "medium/checksum.h"
#include "medium/descriptor.h"

namespace pawl::wsp::vm {

namespace {

constexpr std::size_t kHeadBytes = std::size_t{64} << 10;
constexpr std::size_t kSampleBytes = 4096;

std::int64_t time_ns(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// splitmix64: the next of a sequence that the seed determines.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

Status identify_device(const std::string& path, FileIdentity& identity) {
  const Result<Descriptor> device = open_disk(path, O_RDONLY);
  if (!device.ok()) return device.status();
  std::array<std::byte, kHeadBytes> head{};
  const int number = device.value().get();
  if (::ioctl(number, BLKGETSIZE64, &identity.size_bytes) != 0)
    return FailedCall{errno, "cannot look at the disk " + path};
  const ssize_t count = ::pread(number, head.data(), head.size(), 0);
  if (count < 0) return FailedCall{errno, "cannot read the disk " + path};
  identity.head_checksum = checksum(head.data(), static_cast<std::size_t>(count));
  identity.is_device = 1;
  identity.inode = identity.born_ns = identity.modified_ns = identity.changed_ns = 0;
  return {};
}

// `flags`: of statx(2).
Result<FileIdentity> identify_at(int directory, const std::string& name, int flags,
                                 const std::string& path) {
  struct statx facts{};
  if (::statx(directory, name.c_str(), flags, STATX_BASIC_STATS | STATX_BTIME, &facts) != 0)
    return FailedCall{errno, "cannot look at " + path};
  FileIdentity identity;
  identity.device = S_ISBLK(facts.stx_mode) ? makedev(facts.stx_rdev_major, facts.stx_rdev_minor)
                                            : makedev(facts.stx_dev_major, facts.stx_dev_minor);
  identity.inode = facts.stx_ino;
  identity.size_bytes = facts.stx_size;
  identity.born_ns = (facts.stx_mask & STATX_BTIME) != 0 ? time_ns(facts.stx_btime) : 0;
  identity.modified_ns = time_ns(facts.stx_mtime);
  identity.changed_ns = time_ns(facts.stx_ctime);
  identity.accessed_ns = time_ns(facts.stx_atime);
  if (S_ISBLK(facts.stx_mode)) {
    PAWL_TRY(identify_device(path, identity));
  } else if (!S_ISREG(facts.stx_mode)) {
    return Status::failure(ENOTSUP, path + " is neither a file nor a block device");
  }
  return identity;
}

}  // namespace

Result<Descriptor> open_disk(const std::string& path, int flags) {
  Descriptor disk(::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat facts{};
  if (!disk.valid() || ::fstat(disk.get(), &facts) != 0)
    return FailedCall{errno, "cannot open the disk " + path};
  if (!S_ISREG(facts.st_mode) && !S_ISBLK(facts.st_mode))
    return Status::failure(ENOTSUP, path + " is neither a file nor a block device");
  return disk;
}

Result<FileIdentity> identify(const std::string& path) {
  return identify_at(AT_FDCWD, path, 0, path);
}

Result<FileIdentity> identify_memory(const MachineDirectory& directory) {
  return identify_at(directory.descriptor(), kMemoryFile, AT_SYMLINK_NOFOLLOW,
                     directory.path_of(kMemoryFile));
}

Result<FileIdentity> identify_open(int descriptor, const std::string& path) {
  return identify_at(descriptor, "", AT_EMPTY_PATH, path);
}

Status flush_times(const std::string& path) {
  const Result<Descriptor> file = open_disk(path, O_RDONLY);
  if (!file.ok()) return file.status();
  if (::fsync(file.value().get()) != 0) return FailedCall{errno, "cannot flush " + path};
  return {};
}

Result<std::uint32_t> sample_checksum(int descriptor, std::uint64_t size_bytes,
                                      std::uint64_t seed) {
  const std::uint64_t pages = size_bytes / kSampleBytes;
  if (pages == 0) return Status::failure(EINVAL, "the memory is smaller than a page");
  std::array<std::byte, kSampleBytes> page;
  std::uint32_t sum = 0;
  for (std::uint64_t i = 0; i < kMemorySamplePages; ++i) {
    const std::uint64_t at = next_random(seed) % pages * kSampleBytes;
    if (::pread(descriptor, page.data(), page.size(), static_cast<off_t>(at)) !=
        ssize_t{kSampleBytes})
      return FailedCall{errno == 0 ? EIO : errno, "cannot read the guest's memory"};
    sum = checksum(page.data(), page.size(), sum);
  }
  return sum;
}

Status arm_access_time(int descriptor, const std::string& path) {
  const std::array<timespec, 2> times{timespec{0, 0}, timespec{0, UTIME_NOW}};
  if (::futimens(descriptor, times.data()) != 0)
    return FailedCall{errno, "cannot set the times of " + path};
  return {};
}

}  // namespace pawl::wsp::vm
