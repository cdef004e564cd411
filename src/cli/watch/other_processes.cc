#include "cli/watch/other_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>

#include "medium/memory_areas.h"

namespace pawl::cli::watch {

namespace {

// The names in a directory that are numbers.
class Numbers {
 public:
  explicit Numbers(const std::string& path) : directory_(::opendir(path.c_str())) {
    is_refused_ = directory_ == nullptr && errno == EACCES;
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() {
    if (directory_ != nullptr) ::closedir(directory_);
  }
  bool is_refused() const { return is_refused_; }
  std::optional<int> next() {
    while (directory_ != nullptr) {
      const dirent* const entry = ::readdir(directory_);
      if (entry == nullptr) return std::nullopt;
      if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') return std::atoi(entry->d_name);
    }
    return std::nullopt;
  }

 private:
  DIR* directory_;
  bool is_refused_ = false;
};

std::string directory_of(pid_t process) { return "/proc/" + std::to_string(process); }

// Which file it leads to does not change: for that no server is asked, which may be gone.
FileKey key_at(const std::string& link) {
  struct statx found{};
  constexpr unsigned kAsked = STATX_INO | STATX_TYPE;
  return ::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, kAsked, &found) == 0 &&
                 S_ISREG(found.stx_mode)
             ? FileKey{::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino}
             : FileKey{};
}

FileKey key_of(pid_t process, int descriptor) {
  return key_at(fmt::format("{}/fd/{}", directory_of(process), descriptor));
}

bool is_for_writing(pid_t process, int descriptor) {
  std::ifstream file(fmt::format("{}/fdinfo/{}", directory_of(process), descriptor));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags:")) continue;
    const long flags = std::strtol(line.c_str() + 6, nullptr, 8);
    return (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0;
  }
  return false;
}

void look_at_descriptors(Scan& scan, pid_t process, const std::set<FileKey>& files) {
  Numbers numbers(directory_of(process) + "/fd");
  if (numbers.is_refused()) {
    scan.limits.insert(
        "processes of other users could not be looked at: whether one of them has a file open is "
        "not known; run 'pawl doctor' as root to know");
  }
  std::set<FileKey> told;
  std::size_t count = 0;
  for (auto number = numbers.next(); number; number = numbers.next()) {
    if (++count > kScannedDescriptorsMax) {
      scan.limits.insert(fmt::format("only the first {} descriptors of a process were looked at",
                                     kScannedDescriptorsMax));
      return;
    }
    const FileKey key = key_of(process, *number);
    if (!files.contains(key) || told.contains(key) || !is_for_writing(process, *number)) continue;
    told.insert(key);
    scan.holders.push_back(
        {key, fmt::format("process {} has it open for writing", process_text(process))});
  }
}

// Where the device is another than in stat(2) the link tells, to those who may follow it.
FileKey key_of_mapping(pid_t process, const MemoryArea& area) {
  const std::string link =
      fmt::format("{}/map_files/{:x}-{:x}", directory_of(process), area.start, area.end);
  return key_at(link);
}

void look_at_mappings(Scan& scan, pid_t process, const std::set<FileKey>& files) {
  std::set<FileKey> told;
  visit_memory_areas(directory_of(process) + "/maps", [&](const MemoryArea& area) {
    if ((area.protection & PROT_WRITE) == 0 || !area.is_shared || area.inode == 0) return true;
    for (const FileKey& key : files) {
      if (key.inode != area.inode || told.contains(key)) continue;
      if (area.device != key.device && key_of_mapping(process, area) != key) continue;
      told.insert(key);
      scan.holders.push_back({key, fmt::format("process {} has it mapped shared and writable",
                                               process_text(process))});
    }
    return true;
  });
}

}  // namespace

std::string target_of(const std::string& link) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  return length <= 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

std::string process_text(pid_t process) {
  std::ifstream file(directory_of(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return fmt::format("{} ({})", process, name.empty() ? "ended" : name);
}

std::vector<int> descriptors_of(pid_t process, const FileKey& file) {
  std::vector<int> found;
  Numbers numbers(directory_of(process) + "/fd");
  std::size_t count = 0;
  for (auto number = numbers.next(); number && ++count <= kScannedDescriptorsMax;
       number = numbers.next()) {
    if (key_of(process, *number) == file) found.push_back(*number);
  }
  return found;
}

std::size_t count_descriptors_of(pid_t process) {
  Numbers numbers(directory_of(process) + "/fd");
  std::size_t count = 0;
  while (count < kScannedDescriptorsMax && numbers.next()) ++count;
  return count;
}

Scan find_holders(const std::set<FileKey>& files, const std::set<pid_t>& known) {
  Scan scan;
  if (files.empty()) return scan;
  Numbers processes("/proc");
  std::size_t count = 0;
  for (auto process = processes.next(); process; process = processes.next()) {
    if (*process == ::getpid() || known.contains(*process)) continue;
    if (++count > kScannedProcessesMax) {
      scan.limits.insert(fmt::format("only the first {} processes of this machine were looked at",
                                     kScannedProcessesMax));
      break;
    }
    look_at_descriptors(scan, *process, files);
    look_at_mappings(scan, *process, files);
  }
  return scan;
}

}  // namespace pawl::cli::watch
