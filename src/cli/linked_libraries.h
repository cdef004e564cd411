// The libraries that a program is linked with, by what it says and where the loader looks.  The
// loader itself is not asked: it is a program that the file names, and runs what the file names
// (DT_AUDIT).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cli/elf_image.h"

namespace pawl::cli {

inline constexpr std::size_t kModuleBytesMax = std::size_t{1} << 30;
inline constexpr std::size_t kLibrariesMax = 1024;
inline constexpr std::size_t kLibrariesBytesMax = std::size_t{4} << 30;  // of all together

struct LinkedLibraries {
  std::function<void(const std::string& path, const ElfImage& library)> found;
  std::function<void(const std::string& name, const std::string& why)> not_read;
};

// Tells of each once, and not of those whose functions are wrapped (track/store_modules.h).  Looked
// at as ld.so(8) does: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the loader's cache, the system's
// directories; but for $LIB and $PLATFORM, and directories of glibc-hwcaps.
void visit_linked_libraries(const std::string& path, const ElfImage& program,
                            const LinkedLibraries& visitor);

}  // namespace pawl::cli
