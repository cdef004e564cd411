#include "cli/watch/process_start.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>

#include "cli/watch/other_processes.h"

namespace pawl::cli::watch {

namespace {

constexpr std::size_t kEnvironmentBytesMax = std::size_t{8} << 20;
constexpr const char* kVariable = "PAWL_DOCTOR=1";
constexpr std::string_view kPreloadVariable = "LD_PRELOAD=";
constexpr std::string_view kPreloadMark = "ld-linux-x86-64.so.2";

// The list is separated by colons or spaces.
bool names_the_mark(std::string_view list) {
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find_first_of(": "));
    if (one == kPreloadMark) return true;
    list.remove_prefix(std::min(one.size() + 1, list.size()));
  }
  return false;
}

bool are_same(const std::string& one, const std::string& other) {
  struct stat first{};
  struct stat second{};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Than this process; false where it has ended.
bool has_other_root(pid_t process) {
  const std::string root = fmt::format("/proc/{}/root/", process);
  struct stat status{};
  if (::stat(root.c_str(), &status) != 0) return false;
  return !are_same(root, "/") ||
         target_of(fmt::format("/proc/{}/ns/mnt", process)) != target_of("/proc/self/ns/mnt");
}

// The libraries of this process: most of the preload library's are among them.
std::set<std::string> own_libraries() {
  std::set<std::string> libraries;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && line.find(".so", path) != std::string::npos)
      libraries.insert(line.substr(path));
  }
  return libraries;
}

}  // namespace

std::vector<std::string> trial_variables(const char* others) {
  std::string preload = std::string(kPreloadVariable) + std::string(kPreloadMark);
  if (others != nullptr && *others != '\0') preload += std::string(":") + others;
  return {kVariable, preload};
}

StartEnvironment start_environment_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  if (!file) return {};
  StartEnvironment found{false, false};
  std::size_t bytes = 0;
  for (std::string variable; std::getline(file, variable, '\0');) {
    if (variable == kVariable) found.has_variables = true;
    // Of several the loader takes the last.
    if (variable.starts_with(kPreloadVariable))
      found.has_preload = names_the_mark(variable.substr(kPreloadVariable.size()));
    bytes += variable.size();
    if (bytes > kEnvironmentBytesMax) return {};
  }
  return found;
}

RootDirectory root_directory_of(pid_t process, const std::string& library) {
  RootDirectory found;
  if (!has_other_root(process)) return found;
  const std::string root = fmt::format("/proc/{}/root", process);
  struct stat status{};
  found.has_library = ::stat((root + library).c_str(), &status) == 0;
  for (const std::string& one : own_libraries()) {
    if (!are_same(root + one, one)) found.has_other_libraries = true;
  }
  return found;
}

bool has_proc(pid_t process) {
  struct stat status{};
  return !has_other_root(process) ||
         ::lstat(fmt::format("/proc/{}/root/proc/self", process).c_str(), &status) == 0;
}

}  // namespace pawl::cli::watch
