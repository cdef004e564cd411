#include "msync/data_journal.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "msync/systems.h"

namespace pawl::bench {
namespace {

// For ext4's journal (every data block passes through it) and its tables.
constexpr std::uint64_t kJournalMiB = 128;
constexpr std::uint64_t kRoomBytes = std::uint64_t{256} << 20;

// The last line that a shell command prints.  `command` holds no text that came from outside.
std::string output_of(const std::string& command) {
  std::array<char, 512> line{};
  std::string last;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) fail_with_errno("cannot run " + command);
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) last = line.data();
  const int outcome = ::pclose(pipe);
  while (!last.empty() && last.back() == '\n') last.pop_back();
  if (outcome != 0) throw Unavailable(command + ": " + last);
  return last;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? "'\\''" : std::string(1, letter);
  return result + "'";
}

// Detaches the device when its last user has gone.
class LoopDevice {
 public:
  explicit LoopDevice(const std::string& image)
      : path_(output_of("losetup --find --show --direct-io=on " + quoted(image))) {}
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  ~LoopDevice() {
    try {
      output_of("losetup --detach " + path_);
    } catch (const std::exception& exception) {
      std::fprintf(stderr, "bench: %s\n", exception.what());
    }
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Takes the mount out of sight; it ends when its last file is closed.
class Mount {
 public:
  Mount(const std::string& device, std::string at) : at_(std::move(at)) {
    if (::mount(device.c_str(), at_.c_str(), "ext4", MS_NOATIME, "data=journal") != 0)
      throw Unavailable("cannot mount " + device + " with data=journal");
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  ~Mount() { ::umount2(at_.c_str(), MNT_DETACH); }

 private:
  const std::string at_;
};

}  // namespace

File make_data_journal_file(const std::string& directory, std::uint64_t bytes) {
  if (::geteuid() != 0) throw Unavailable("a loop device needs root");
  const std::string image = directory + "/data-journal.image";
  const std::string at = directory + "/data-journal";
  {
    const File written = make_written_file(image, bytes + kRoomBytes);
  }
  output_of("mkfs.ext4 -q -F -E nodiscard -J size=" + std::to_string(kJournalMiB) + " " +
            quoted(image));
  std::filesystem::create_directory(at);
  const LoopDevice device(image);
  ::unlink(image.c_str());
  const Mount mount(device.path(), at);
  return make_written_file(at + "/file", bytes);
}

}  // namespace pawl::bench
