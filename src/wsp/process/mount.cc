#include "wsp/process/mount.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

constexpr unsigned kKernelMinorBits = 20;  // of a device

std::uint32_t restrictions_in(const std::string& options) {
  std::uint32_t found = 0;
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "ro") found |= kMountReadOnly;
    if (word == "nosuid") found |= kMountNoSetUser;
    if (word == "nodev") found |= kMountNoDevices;
    if (word == "noexec") found |= kMountNoExecution;
    if (word == "nosymfollow") found |= kMountNoLinks;
  }
  return found;
}

// The number, that of its parent, the device, its root, where it lies, its options.
std::optional<Mount> parse_mount(const std::string& line) {
  std::istringstream words(line);
  std::string skipped;
  std::string device;
  std::string options;
  unsigned major = 0;
  unsigned minor = 0;
  if (!(words >> skipped >> skipped >> device >> skipped >> skipped >> options) ||
      std::sscanf(device.c_str(), "%u:%u", &major, &minor) != 2)
    return std::nullopt;
  return Mount{major << kKernelMinorBits | minor, restrictions_in(options)};
}

}  // namespace

std::optional<Mount> MountTable::find(std::uint64_t number) {
  const auto [known, is_first] = found_.try_emplace(number);
  if (!is_first) return known->second;
  if (text_.empty()) text_ = "\n" + read_proc(process_, "mountinfo");
  const std::size_t before = text_.find(fmt::format("\n{} ", number));
  if (before == std::string::npos) return std::nullopt;
  const std::size_t start = before + 1;
  known->second = parse_mount(text_.substr(start, text_.find('\n', start) - start));
  return known->second;
}

std::optional<Mount> mount_of(int file) {
  const std::string information = read_proc(::getpid(), fmt::format("fdinfo/{}", file));
  return MountTable(::getpid()).find(number_of(field_of(information, "mnt_id")));
}

}  // namespace pawl::wsp
