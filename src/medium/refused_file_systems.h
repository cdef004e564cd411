// File systems on which a private mapping or an atomic journal cannot be had: no file of theirs is
// opened.
#pragma once

namespace pawl {

struct RefusedFileSystem {
  long number;         // of statfs(2)
  const char* type;    // the kernel's name, as in /proc/self/mountinfo
  const char* reason;  // "its files are not storage"
};

inline constexpr RefusedFileSystem kRefusedFileSystems[] = {
    {0x9fa0, "proc", "its files are not storage"},
    {0x62656572, "sysfs", "its files are not storage"},
    {0x01021997, "9p", "it keeps no promise about flushed bytes across hosts"},
};

}  // namespace pawl
