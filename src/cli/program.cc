#include "cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "medium/descriptor.h"
#include "medium/regular_file.h"

namespace pawl::cli {

namespace {

constexpr int kInterpretersMax = 4;         // as many as the kernel follows
constexpr std::size_t kFirstLineMax = 256;  // as much as the kernel reads of a '#!' line
constexpr std::uint64_t kProgramHeadersMax = 512;
constexpr std::uint64_t kDynamicEntriesMax = 1024;
constexpr const char* kPreloadName = "libpawl-preload.so";

bool is_executable_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

bool gains_privileges(int descriptor, const struct stat& status) {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getgid()) return true;
  return ::getuid() != 0 && ::fgetxattr(descriptor, "security.capability", nullptr, 0) > 0;
}

// Takes the first word off.
std::string_view take_word(std::string_view& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

// What stands behind '#!' in the first line, or nothing.
std::string_view interpreter_line(std::string_view start) {
  if (!start.starts_with("#!")) return {};
  start.remove_prefix(2);
  return start.substr(0, start.find('\n'));
}

// The interpreter that a '#!' line names, or nothing.
std::string interpreter_of(std::string_view start) {
  std::string_view line = interpreter_line(start);
  return std::string(take_word(line));
}

std::string_view file_name_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// As many as can be read.
template <class Entry>
std::vector<Entry> read_entries(int descriptor, std::uint64_t offset, std::uint64_t count) {
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    Entry entry{};
    if (::pread(descriptor, &entry, sizeof(entry),
                static_cast<off_t>(offset + i * sizeof(entry))) !=
        static_cast<ssize_t>(sizeof(entry))) {
      break;
    }
    entries.push_back(entry);
  }
  return entries;
}

std::vector<Elf64_Phdr> segments_of(int descriptor, const Elf64_Ehdr& header) {
  return read_entries<Elf64_Phdr>(descriptor, header.e_phoff,
                                  std::min<std::uint64_t>(header.e_phnum, kProgramHeadersMax));
}

// A text of at most PATH_MAX bytes.
std::string text_at(int descriptor, std::uint64_t offset) {
  std::array<char, PATH_MAX> text{};
  if (::pread(descriptor, text.data(), text.size() - 1, static_cast<off_t>(offset)) <= 0) return {};
  return text.data();
}

// The name that a shared object has for the dynamic loader, or nothing.
std::string soname_of(int descriptor, const std::vector<Elf64_Phdr>& segments) {
  std::uint64_t name = 0;
  std::uint64_t strings = 0;
  bool has_name = false;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const std::uint64_t count =
        std::min<std::uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), kDynamicEntriesMax);
    for (const Elf64_Dyn& entry : read_entries<Elf64_Dyn>(descriptor, segment.p_offset, count)) {
      if (entry.d_tag == DT_SONAME) {
        name = entry.d_un.d_val;
        has_name = true;
      }
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
    }
  }
  if (!has_name) return {};
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && strings >= segment.p_vaddr &&
        strings - segment.p_vaddr < segment.p_filesz) {
      return text_at(descriptor, segment.p_offset + (strings - segment.p_vaddr) + name);
    }
  }
  return {};
}

Preloadability check_elf(const std::string& path, int descriptor) {
  Elf64_Ehdr header{};
  if (::pread(descriptor, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return {};  // neither ELF nor a script: the kernel will say what it thinks of it
  }
  Elf64_Ehdr own{};
  const Descriptor self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (::pread(self.get(), &own, sizeof(own), 0) == static_cast<ssize_t>(sizeof(own)) &&
      (own.e_machine != header.e_machine || own.e_ident[EI_CLASS] != header.e_ident[EI_CLASS])) {
    return {Obstacle::architecture,
            Status::failure(ENOEXEC, path + " is for another architecture than this Pawl, so that "
                                            "libpawl-preload.so cannot be loaded into it")};
  }
  const std::vector<Elf64_Phdr> segments = segments_of(descriptor, header);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_INTERP) continue;
    const std::string loader = text_at(descriptor, segment.p_offset);
    if (!file_name_of(loader).starts_with("ld-musl")) return {};
    return {
        Obstacle::other_c_library,
        Status::failure(ENOEXEC, path + " is linked with musl, and libpawl-preload.so needs the "
                                        "GNU C library. Link it with that, or have it call "
                                        "pawl_mmap itself")};
  }
  // The dynamic loader may be executed itself, with the program as its argument, and then loads
  // what LD_PRELOAD names.
  if (soname_of(descriptor, segments).starts_with("ld-linux")) return {};
  return {Obstacle::static_linking,
          Status::failure(
              ENOEXEC, path + " is statically linked, so that libpawl-preload.so cannot be loaded "
                              "into it and its mappings would not be atomic. Link it dynamically, "
                              "or have it call pawl_mmap itself")};
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  const auto not_executable = [](const std::string& path) {
    return Status::failure(EACCES, path + " is not an executable file");
  };
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name)) return name;
    if (::access(name.c_str(), F_OK) != 0) {
      return Status::failure(ENOENT, "there is no program " + name);
    }
    return not_executable(name);
  }
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::string present;  // found, but not executable
  while (true) {
    const std::size_t colon = rest.find(':');
    std::string directory(rest.substr(0, colon));
    if (directory.empty()) directory = ".";
    const std::string path = directory + "/" + name;
    if (is_executable_file(path)) return path;
    if (present.empty() && ::access(path.c_str(), F_OK) == 0) present = path;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!present.empty()) return not_executable(present);
  return Status::failure(ENOENT, "there is no program " + name + " in the directories of PATH");
}

Preloadability preloadability_of(const std::string& path, const std::string& shown) {
  std::string current = path;
  std::string name = shown.empty() ? path : shown;  // of `current`, for people
  for (int depth = 0; depth <= kInterpretersMax; ++depth) {
    const Result<Descriptor> opened = open_regular(AT_FDCWD, current, O_RDONLY | O_CLOEXEC, name);
    struct stat status{};
    if (!opened.ok()) {
      // Executable but not readable: the loader would treat it as any other.
      if (opened.status().error_number() == EACCES) return {};
      return {Obstacle::cannot_look, opened.status()};
    }
    const Descriptor& file = opened.value();
    if (::fstat(file.get(), &status) != 0)
      return {Obstacle::cannot_look, FailedCall{errno, "cannot stat " + name}};
    std::array<char, kFirstLineMax> start{};
    const ssize_t count = ::pread(file.get(), start.data(), start.size(), 0);
    const std::string interpreter =
        interpreter_of({start.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
    if (interpreter.empty()) {
      if (gains_privileges(file.get(), status)) {
        return {Obstacle::privileges,
                Status::failure(EPERM, name + " runs with more privileges than yours (setuid, "
                                              "setgid or capabilities), and the loader then "
                                              "ignores LD_PRELOAD: its mappings would not be "
                                              "atomic. Run it as the user that it becomes")};
      }
      return check_elf(name, file.get());
    }
    current = interpreter;
    name = interpreter;
  }
  return {Obstacle::cannot_look,
          Status::failure(ELOOP, path + " names one interpreter after another")};
}

std::string shell_of(const std::string& path) {
  constexpr std::array<std::string_view, 7> kShells = {"sh",  "bash", "dash",   "ash",
                                                       "ksh", "zsh",  "busybox"};
  const Result<Descriptor> file = open_regular(path, O_RDONLY | O_CLOEXEC);
  std::array<char, kFirstLineMax> start{};
  const ssize_t count = file.ok() ? ::pread(file.value().get(), start.data(), start.size(), 0) : 0;
  std::string_view line =
      interpreter_line({start.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
  std::string_view word = take_word(line);
  if (file_name_of(word) == "env") {
    do {
      word = take_word(line);
    } while (word.starts_with('-'));
  }
  const bool is_shell =
      std::find(kShells.begin(), kShells.end(), file_name_of(word)) != kShells.end();
  return is_shell ? std::string(word) : std::string();
}

Status check_preloadable(const std::string& path) { return preloadability_of(path).status; }

Result<std::string> find_preload_library() {
  constexpr std::array<const char*, 6> kPlaces = {
      "", "../lib/", "../lib/x86_64-linux-gnu/", "../lib/aarch64-linux-gnu/", "../lib64/", "lib/"};
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length < 0) return FailedCall{errno, "cannot find the command's own path in /proc"};
  const std::string own(self.data(), static_cast<std::size_t>(length));
  const std::string directory = own.substr(0, own.rfind('/') + 1);
  for (const char* place : kPlaces) {
    std::array<char, PATH_MAX> real{};
    const std::string candidate = directory + place + kPreloadName;
    if (::realpath(candidate.c_str(), real.data()) == nullptr) continue;
    std::string found = real.data();
    if (found.find_first_of(": ") != std::string::npos) {
      return Status::failure(EINVAL, found +
                                         " has a space or a colon in its path, which LD_PRELOAD "
                                         "cannot hold; install Pawl elsewhere");
    }
    return found;
  }
  return Status::failure(ENOENT, fmt::format("{} is neither beside {} nor in ../lib from there; "
                                             "install Pawl completely",
                                             kPreloadName, own));
}

}  // namespace pawl::cli
