#include "snapshot/kinds.h"

#include <unistd.h>

#include <array>
#include <climits>

namespace pawl::bench {

const std::vector<Profile>& all_profiles() {
  static const std::vector<Profile> profiles = {
      {"zero", 0, 0, "memory as it is, with its flushes and fences"},
      {"optane", 28, 90,
       "a line at the 2.3 GB/s that one module takes, a fence at the 90 ns of an idle one (Yang et "
       "al., FAST 2020)"},
      {"cxl-ssd", 64, 1000,
       "a line at 1 GB/s, a fence at the 1 us under which a flash device behind CXL serves most "
       "requests (Yang et al., USENIX ATC 2023)"},
  };
  return profiles;
}

const std::vector<SnapshotKind>& all_snapshot_kinds() {
  static const std::vector<SnapshotKind> kinds = {
      {kNone, "plain", Place::nowhere,
       "malloc, and no commits: the same program without durability", false},
      {"none-marked", "marked", Place::nowhere, "the same, compiled with marks that find nothing",
       false},
      {"fence", "plain", Place::memory,
       "malloc, and two lines and a fence at each commit: less than any log can do with", false},
      {"lines", "plain", Place::memory,
       "malloc, and as many lines as Pawl's commits have, and a fence: no marks, no records, no "
       "books",
       false},
      {"msync-tmpfs", "plain", Place::memory,
       "a shared mapping on tmpfs and msync of all of it, which does nothing there", false},
      {"msync-block", "plain", Place::disk,
       "a shared mapping of a file and msync of all of it: durable, not atomic", true},
      {"pawl-scan", "plain", Place::memory, "Pawl's heap, tracker scan, medium memory", false},
      {kPawlStore, "marked", Place::memory, "Pawl's heap, tracker store, medium memory", false},
      {"pawl-store-block", "marked", Place::disk, "Pawl's heap, tracker store, medium block", true},
      {kPmemobj, "pmemobj", Place::memory, "libpmemobj's transactions, a pool on tmpfs", false},
  };
  return kinds;
}

std::string module_directory() {
  std::array<char, PATH_MAX> self{};
  if (::readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) return "";
  const std::string own = self.data();
  return own.substr(0, own.rfind('/') + 1);
}

std::string module_path(const std::string& name) {
  const std::string path = module_directory() + "snapshot-" + name + ".so";
  return ::access(path.c_str(), R_OK) == 0 ? path : "";
}

}  // namespace pawl::bench
