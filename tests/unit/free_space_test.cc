// What a disk says of its free space.  The system calls are made up here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cerrno>

#include "medium/block_medium.h"
#include "support/temporary_directory.h"

namespace {

constexpr std::uint64_t kWantedBytes = std::uint64_t{1} << 30;
uid_t user = 0;
int reservations = 0;

}  // namespace

extern "C" {

// Of twice what is wanted, a little is for everyone.
int fstatvfs(int /*descriptor*/, struct statvfs* disk) noexcept {
  *disk = {};
  disk->f_frsize = disk->f_bsize = 4096;
  disk->f_blocks = disk->f_bfree = 2 * kWantedBytes / 4096;
  disk->f_bavail = 1;
  return 0;
}

uid_t geteuid() noexcept { return user; }

int fallocate(int /*descriptor*/, int /*mode*/, off_t /*offset*/, off_t /*length*/) {
  ++reservations;
  return 0;
}

}  // extern "C"

namespace pawl {
namespace {

TEST(FreeSpace, SpaceThatOnlyTheSuperuserMayTakeWasCountedOnByEveryone) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "file", "a");
  auto medium = open_block_medium(directory / "file", false);
  ASSERT_TRUE(medium.ok()) << medium.status().text();
  reservations = 0;
  user = 1000;
  EXPECT_EQ(medium.value()->base().reserve(0, kWantedBytes).error_number(), ENOSPC);
  EXPECT_EQ(reservations, 0);
  user = 0;
  EXPECT_TRUE(medium.value()->base().reserve(0, kWantedBytes).ok());
  EXPECT_EQ(reservations, 1);
}

}  // namespace
}  // namespace pawl
