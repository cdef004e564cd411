// A file system that a test fills, if it is root.
#pragma once

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "support/temporary_directory.h"

namespace pawl::test {

// A file system of its own on a loop device, or a tmpfs, as long as this lives.
class LoopFileSystem {
 public:
  LoopFileSystem(const std::string& type, std::uint64_t bytes, const std::string& also = "") {
    ::mkdir(path_.c_str(), 0755);
    if (type == "tmpfs") {
      is_mounted_ = run("mount -t tmpfs -o size=" + std::to_string(bytes) + " none " + path_);
      return;
    }
    const std::string image = directory_ / "image";
    write_file(image, "");
    EXPECT_EQ(::truncate(image.c_str(), static_cast<off_t>(bytes)), 0);
    const std::string options = type == "ext4" ? " -q -F -m 0 " : " -q -f ";
    is_mounted_ = run("mkfs." + type + options + also + " " + image) &&
                  run("mount -o loop " + image + " " + path_);
  }
  ~LoopFileSystem() {
    if (is_mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  LoopFileSystem(const LoopFileSystem&) = delete;
  LoopFileSystem& operator=(const LoopFileSystem&) = delete;

  bool is_mounted() const { return is_mounted_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Takes all space that is left, but for so much.
  void fill(off_t free_bytes = 0) const {
    const int filling = ::open((*this / "ballast").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    off_t end = 0;
    for (off_t piece = off_t{1} << 30; piece >= 512;) {
      if (::fallocate(filling, 0, end, piece) == 0)
        end += piece;
      else
        piece /= 2;
    }
    if (free_bytes > 0) {
      EXPECT_EQ(::ftruncate(filling, end - free_bytes), 0);
      // On btrfs it is free when the file system has committed that.
      EXPECT_EQ(::syncfs(filling), 0);
    }
    ::fsync(filling);
    ::close(filling);
  }
  void empty() const { EXPECT_EQ(::unlink((*this / "ballast").c_str()), 0); }
  // As a loss of power: what is not on the disk is gone.  False: this kernel has no such call.
  bool cut_power() {
    constexpr std::uint32_t kWithoutAnythingMore = 2;
    const int top = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_down = ::ioctl(top, _IOR('X', 125, std::uint32_t), &kWithoutAnythingMore) == 0;
    ::close(top);
    if (!is_down) return false;
    const bool is_off = ::umount(path_.c_str()) == 0;
    EXPECT_TRUE(is_off);
    if (is_off) is_mounted_ = run("mount -o loop " + directory_ / "image" + " " + path_);
    EXPECT_TRUE(is_mounted_);
    return true;
  }

 private:
  static bool run(const std::string& command) {
    return std::system(("PATH=$PATH:/sbin:/usr/sbin " + command + " >/dev/null 2>&1").c_str()) == 0;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "mounted";
  bool is_mounted_ = false;
};

}  // namespace pawl::test
