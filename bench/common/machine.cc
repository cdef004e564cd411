#include "common/machine.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "pawl/pawl.h"

namespace pawl::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Type, options and device, from the mount that holds the directory.
struct FileSystem {
  std::string type = "unknown";
  std::string options;
  std::string device;
};

FileSystem file_system_of(const std::string& directory) {
  FileSystem found;
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) return found;
  const std::string wanted = fmt::format("{}:{}", major(status.st_dev), minor(status.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // id parent major:minor root point options ... - type source options
    std::istringstream words(line);
    std::string id, parent, device, root, point, options, word;
    words >> id >> parent >> device >> root >> point >> options;
    if (device != wanted) continue;
    while (words >> word && word != "-") {
    }
    words >> found.type >> found.device;
    found.options = options;
    break;
  }
  return found;
}

// "write back" and the like; empty where the device says nothing.
std::string write_cache(const std::string& device) {
  const std::string name = device.substr(device.rfind('/') + 1);
  return first_line("/sys/block/" + name + "/queue/write_cache");
}

// virtio, nvme, ...: the driver that serves the disk.
std::string driver(const std::string& device) {
  const std::string name = device.substr(device.rfind('/') + 1);
  char* const path = ::realpath(("/sys/block/" + name + "/device/driver").c_str(), nullptr);
  if (path == nullptr) return "unknown driver";
  const std::string real = path;
  std::free(path);
  return real.substr(real.rfind('/') + 1);
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

Facts describe_machine(const std::string& directory) {
  utsname system{};
  ::uname(&system);
  const FileSystem files = file_system_of(directory);
  const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {
      {"date", now()},
      {"pawl", fmt::format("{}.{}.{}", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR, PAWL_VERSION_PATCH)},
      {"compiler", __VERSION__},
      {"kernel", fmt::format("{} {}", system.sysname, system.release)},
      {"processor", fmt::format("{} x {}", ::sysconf(_SC_NPROCESSORS_ONLN), processor())},
      {"memory_mib", fmt::format("{}", memory >> 20)},
      {"file_system", fmt::format("{} ({})", files.type, files.options)},
      {"disk", fmt::format("{} ({}, write cache: {})", files.device, driver(files.device),
                           write_cache(files.device))},
  };
}

double load_average() {
  double average = 0;
  return ::getloadavg(&average, 1) == 1 ? average : 0;
}

}  // namespace pawl::bench
