#include "medium/writer_notice.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include "medium/held_journal.h"
#include "medium/lock_table.h"

namespace pawl {
namespace {

// Behind the bytes of the writer, and the first of those of the records.  An inode number has 64
// bits: most of them make the place, the rest, and the device's number, the length.
constexpr off_t kNoticesStart = kWriterLockBytes + (off_t{1} << 61);
constexpr off_t kWritersStart = kNoticesStart + (off_t{1} << 60);
constexpr unsigned kInodeBitsInPlace = 59;
constexpr unsigned kDeviceBits = 32;

struct NoticeRange {
  off_t start;
  off_t length;
};

NoticeRange range_of(const struct stat& user, Notice notice) {
  const std::uint64_t inode = user.st_ino;
  const std::uint64_t device =
      std::uint64_t{major(user.st_dev)} << 20 | std::uint64_t{minor(user.st_dev)};
  const std::uint64_t place = inode & ((std::uint64_t{1} << kInodeBitsInPlace) - 1);
  const std::uint64_t rest = inode >> kInodeBitsInPlace << kDeviceBits |
                             (device & ((std::uint64_t{1} << kDeviceBits) - 1));
  const off_t start = notice == Notice::writer ? kWritersStart : kNoticesStart;
  return {start + static_cast<off_t>(place), static_cast<off_t>(rest) + 1};
}

}  // namespace

Status put_notice(int side, const struct stat& user, Notice notice) {
  const NoticeRange range = range_of(user, notice);
  struct flock lock = {.l_type = F_RDLCK,
                       .l_whence = SEEK_SET,
                       .l_start = range.start,
                       .l_len = range.length,
                       .l_pid = 0};
  if (::fcntl(side, F_OFD_SETLK, &lock) == 0) return {};
  return FailedCall{errno, "cannot lock the journal"};
}

Result<std::size_t> count_notices(const struct stat& user, Notice notice) {
  const NoticeRange range = range_of(user, notice);
  const auto table = read_lock_table();
  if (!table.ok()) return table.status();
  std::set<std::string> side_files;  // as the table names them: device and inode
  for (const std::string& line : table.value()) {
    char side_file[64];
    long long first = 0;
    long long last = 0;
    if (std::sscanf(line.c_str(), " OFDLCK %*s READ %*s %63s %lld %lld", side_file, &first,
                    &last) == 3 &&
        first == range.start && last == range.start + range.length - 1)
      side_files.insert(side_file);
  }
  return side_files.size();
}

}  // namespace pawl
