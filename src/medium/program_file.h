// Looks into an executable file: would the dynamic loader take LD_PRELOAD for it? Async-signal-safe
// and without memory, for a child of vfork() asks it, too.
#pragma once

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pawl {

// Why it would not.
enum class Obstacle {
  none,
  cannot_look,
  privileges,
  architecture,
  static_linking,
  other_c_library
};

inline constexpr int kInterpretersMax = 4;         // as many as the kernel follows
inline constexpr std::size_t kFirstLineMax = 256;  // as much as the kernel reads of a '#!' line

// The rest of a sentence that begins with the program's name.
inline std::string_view text_of(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::none:
    case Obstacle::cannot_look:
      return {};
    case Obstacle::privileges:
      return " runs with more privileges than yours (setuid, setgid or capabilities), and the "
             "loader then ignores LD_PRELOAD: its mappings would not be atomic. Run it as the user "
             "that it becomes";
    case Obstacle::architecture:
      return " is for another architecture than this Pawl, so that libpawl-preload.so cannot be "
             "loaded into it";
    case Obstacle::static_linking:
      return " is statically linked, so that libpawl-preload.so cannot be loaded into it and its "
             "mappings would not be atomic. Link it dynamically, or have it call pawl_mmap itself";
    case Obstacle::other_c_library:
      return " is linked with musl, and libpawl-preload.so needs the GNU C library. Link it with "
             "that, or have it call pawl_mmap itself";
  }
  return {};
}

// Takes the first word off.
inline std::string_view take_word(std::string_view& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

// What stands behind '#!' in the first line, or nothing.
inline std::string_view interpreter_line(std::string_view start) {
  if (!start.starts_with("#!")) return {};
  start.remove_prefix(2);
  return start.substr(0, start.find('\n'));
}

// The interpreter that a '#!' line names, or nothing.
inline std::string_view interpreter_of(std::string_view start) {
  std::string_view line = interpreter_line(start);
  return take_word(line);
}

// The beginning of a file.
class FirstLine {
 public:
  explicit FirstLine(int descriptor)
      : count_(std::max<ssize_t>(::pread(descriptor, bytes_.data(), bytes_.size(), 0), 0)) {}
  std::string_view text() const { return {bytes_.data(), static_cast<std::size_t>(count_)}; }

 private:
  std::array<char, kFirstLineMax> bytes_{};
  ssize_t count_;
};

inline std::string_view file_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

inline bool gains_privileges(int descriptor, const struct stat& status) {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getgid()) return true;
  return ::getuid() != 0 && ::fgetxattr(descriptor, "security.capability", nullptr, 0) > 0;
}

// A file of the format ELF; of any other the kernel will say what it thinks of it.
class ElfProgram {
 public:
  explicit ElfProgram(int descriptor) : descriptor_(descriptor) {
    is_elf_ = read_at(0, header_) && std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0;
  }

  Obstacle obstacle() const {
    if (!is_elf_) return Obstacle::none;
    if (header_.e_machine != kOwnMachine || header_.e_ident[EI_CLASS] != ELFCLASS64)
      return Obstacle::architecture;
    Elf64_Phdr segment{};
    if (find_segment(segment, [](const Elf64_Phdr& one) { return one.p_type == PT_INTERP; })) {
      const Name loader = name_at(segment.p_offset);
      return file_name_of(loader.data()).starts_with("ld-musl") ? Obstacle::other_c_library
                                                                : Obstacle::none;
    }
    // The dynamic loader may be executed itself, with the program as its argument, and then loads
    // what LD_PRELOAD names.
    return is_called("ld-linux") ? Obstacle::none : Obstacle::static_linking;
  }

 private:
#if defined(__x86_64__)
  static constexpr Elf64_Half kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
  static constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#elif defined(__riscv)
  static constexpr Elf64_Half kOwnMachine = EM_RISCV;
#else
#error "which machine does an executable file name here?"
#endif
  static constexpr std::uint64_t kSegmentsMax = 512;
  static constexpr std::uint64_t kDynamicEntriesMax = 1024;
  using Name = std::array<char, 256>;  // as much of one as tells loaders apart

  template <class Entry>
  bool read_at(std::uint64_t offset, Entry& entry) const {
    return ::pread(descriptor_, &entry, sizeof(entry), static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(sizeof(entry));
  }

  Name name_at(std::uint64_t offset) const {
    Name name{};
    if (::pread(descriptor_, name.data(), name.size() - 1, static_cast<off_t>(offset)) <= 0)
      return {};
    return name;
  }

  template <class IsWanted>
  bool find_segment(Elf64_Phdr& segment, const IsWanted& is_wanted) const {
    const std::uint64_t count = std::min<std::uint64_t>(header_.e_phnum, kSegmentsMax);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!read_at(header_.e_phoff + i * sizeof(segment), segment)) return false;
      if (is_wanted(segment)) return true;
    }
    return false;
  }

  // By the name that a shared object has for the dynamic loader.
  bool is_called(std::string_view start) const {
    Elf64_Phdr segment{};
    if (!find_segment(segment, [](const Elf64_Phdr& one) { return one.p_type == PT_DYNAMIC; }))
      return false;
    std::uint64_t name = 0;
    std::uint64_t strings = 0;
    bool has_name = false;
    const std::uint64_t count =
        std::min<std::uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), kDynamicEntriesMax);
    Elf64_Dyn entry{};
    for (std::uint64_t i = 0; i < count && read_at(segment.p_offset + i * sizeof(entry), entry) &&
                              entry.d_tag != DT_NULL;
         ++i) {
      if (entry.d_tag == DT_SONAME) {
        name = entry.d_un.d_val;
        has_name = true;
      }
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
    }
    return has_name &&
           find_segment(segment,
                        [&](const Elf64_Phdr& one) {
                          return one.p_type == PT_LOAD && strings >= one.p_vaddr &&
                                 strings - one.p_vaddr < one.p_filesz;
                        }) &&
           std::string_view(name_at(segment.p_offset + (strings - segment.p_vaddr) + name).data())
               .starts_with(start);
  }

  int descriptor_;
  Elf64_Ehdr header_{};
  bool is_elf_ = false;
};

// `descriptor` is open for reading, `status` is its file's.  Of a script its interpreter matters.
inline Obstacle obstacle_to_preloading(int descriptor, const struct stat& status) {
  if (gains_privileges(descriptor, status)) return Obstacle::privileges;
  return ElfProgram(descriptor).obstacle();
}

}  // namespace pawl
