#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>

namespace pawl {

// Of the mount that the file was opened through; 0 where the kernel does not say.
inline std::uint64_t mount_of(int descriptor) {
  struct statx status{};
  if (::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &status) != 0)
    return 0;
  return (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
}

}  // namespace pawl
