// How much a file system says that it has left.
#pragma once

#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>

#include "medium/medium.h"

namespace pawl {

inline std::uint64_t free_bytes_of(const struct statvfs& disk) {
  if (disk.f_blocks == 0) return MediumFile::kNotBounded;  // It has no bound to tell of.
  // Some of what is free may be kept for the superuser.
  const std::uint64_t free_blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  return free_blocks * disk.f_frsize;
}

}  // namespace pawl
