#include "wsp/vm/memory_place.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "medium/descriptor.h"
#include "wsp/vm/file_identity.h"

namespace pawl::wsp::vm {

namespace {

constexpr const char* kTrialFile = "trial";
constexpr std::size_t kTrialBytes = 4096;
constexpr int kRegionsMax = 256;

// Linux names for each region of persistent memory how far the platform carries a store when the
// power fails: "cpu_cache" is all the way, "memory_controller" leaves the caches to the program.
bool platform_flushes_caches() {
  std::error_code error;
  int regions = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/nd/devices", error)) {
    if (!entry.path().filename().string().starts_with("region")) continue;
    std::ifstream file(entry.path() / "persistence_domain");
    std::string domain;
    if (!(file >> domain) || domain != "cpu_cache" || ++regions > kRegionsMax) return false;
  }
  return regions > 0;
}

// Whether a mapping is seen in the time of access of a file whose times were set as a seal does.
Result<bool> sees_a_mapping(int descriptor, const std::string& path) {
  PAWL_TRY(arm_access_time(descriptor, path));
  const Result<FileIdentity> before = identify_open(descriptor, path);
  if (!before.ok()) return before.status();
  void* const mapped =
      ::mmap(nullptr, kTrialBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return FailedCall{errno, "cannot map a file in " + path};
  ::munmap(mapped, kTrialBytes);
  const Result<FileIdentity> after = identify_open(descriptor, path);
  if (!after.ok()) return after.status();
  return after.value().accessed_ns != before.value().accessed_ns;
}

}  // namespace

Result<MemoryPlace> look_at_memory_place(const MachineDirectory& directory) {
  Result<Descriptor> made = directory.files().make_file(kTrialFile);
  if (!made.ok()) return made.status();
  const Descriptor file = std::move(made.value());
  if (::ftruncate(file.get(), kTrialBytes) != 0)
    return FailedCall{errno, "cannot make a file in " + directory.path()};
  const Result<bool> seen = sees_a_mapping(file.get(), directory.path_of(kTrialFile));
  struct statfs system{};
  struct statx facts{};
  const bool looked = ::fstatfs(file.get(), &system) == 0 &&
                      ::statx(file.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &facts) == 0;
  const int error_number = errno;
  ::unlinkat(directory.descriptor(), kTrialFile, 0);
  if (!seen.ok()) return seen.status();
  if (!looked) return FailedCall{error_number, "cannot look at " + directory.path()};
  MemoryPlace place;
  place.sees_access = seen.value();
  if (system.f_type == TMPFS_MAGIC) {
    place.kind = MemoryPlace::Kind::kTmpfs;
  } else if ((facts.stx_attributes & STATX_ATTR_DAX) != 0) {
    place.kind = platform_flushes_caches() ? MemoryPlace::Kind::kDaxFlushed
                                           : MemoryPlace::Kind::kDaxUnflushed;
  }
  return place;
}

}  // namespace pawl::wsp::vm
