// The systems that are compared, and the media they are measured on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pawl::bench {

// What a cache line and a fence cost more than memory does.
struct Profile {
  const char* name = "";
  std::uint64_t line_ns = 0;
  std::uint64_t fence_ns = 0;
  const char* source = "";
};
const std::vector<Profile>& all_profiles();

enum class Place { nowhere, memory, disk };

struct SnapshotKind {
  const char* name = "";
  const char* module = "";  // its structures are in: plain, marked, pmemobj
  Place place = Place::nowhere;
  const char* setting = "";
  bool slow = false;  // a sample takes a disk's time
};
const std::vector<SnapshotKind>& all_snapshot_kinds();

inline constexpr const char* kNone = "none";
inline constexpr const char* kPawlStore = "pawl-store";
inline constexpr const char* kPmemobj = "pmemobj";

// Where this program is, with a slash at the end; modules are there, too.
std::string module_directory();
// The path of a module, beside this program.  Empty when it was not built.
std::string module_path(const std::string& name);

}  // namespace pawl::bench
