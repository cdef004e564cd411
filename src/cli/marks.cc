#include "cli/marks.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "medium/descriptor.h"
#include "medium/regular_file.h"
#include "track/store_modules.h"

namespace pawl::cli {
namespace {

constexpr std::size_t kModuleBytesMax = std::size_t{1} << 30;
constexpr std::size_t kListBytesMax = std::size_t{1} << 20;
constexpr int kExecFailed = 127;

// A module's file, and what it says of itself; nothing outside of it is looked at.
class Module {
 public:
  static Result<Module> read(const std::string& path) {
    const Result<Descriptor> opened = open_regular(path, O_RDONLY | O_CLOEXEC);
    if (!opened.ok()) return opened.status();
    const Descriptor& file = opened.value();
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return FailedCall{errno, "cannot stat " + path};
    Module module;
    if (!S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) > kModuleBytesMax)
      return Status::failure(ENOEXEC, path + " is not a program");
    module.bytes_.resize(static_cast<std::size_t>(status.st_size));
    std::size_t have = 0;
    while (have < module.bytes_.size()) {
      const ssize_t got = ::pread(file.get(), module.bytes_.data() + have,
                                  module.bytes_.size() - have, static_cast<off_t>(have));
      if (got <= 0) return FailedCall{got < 0 ? errno : EIO, "cannot read " + path};
      have += static_cast<std::size_t>(got);
    }
    const auto* header = module.at<Elf64_Ehdr>(0, 1);
    if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
      return Status::failure(ENOEXEC, path + " is not a program of 64 bits");
    return module;
  }

  // The loader that the program names, or nothing.
  std::string interpreter() const {
    const auto* header = at<Elf64_Ehdr>(0, 1);
    const auto* segments = at<Elf64_Phdr>(header->e_phoff, header->e_phnum);
    for (std::size_t i = 0; segments != nullptr && i < header->e_phnum; ++i) {
      if (segments[i].p_type != PT_INTERP) continue;
      const char* const name = at<char>(segments[i].p_offset, segments[i].p_filesz);
      return name == nullptr ? std::string()
                             : std::string(name, ::strnlen(name, segments[i].p_filesz));
    }
    return {};
  }

  // It calls marks of a library, or has those of the archive, which are linked only if called.
  bool has_marks() const {
    const auto* header = at<Elf64_Ehdr>(0, 1);
    const auto* sections = at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    for (std::size_t i = 0; sections != nullptr && i < header->e_shnum; ++i) {
      const bool is_dynamic = sections[i].sh_type == SHT_DYNSYM;
      if (!is_dynamic && sections[i].sh_type != SHT_SYMTAB) continue;
      if (sections[i].sh_link >= header->e_shnum) continue;
      if (names_marks(sections[i], sections[sections[i].sh_link], is_dynamic)) return true;
    }
    return false;
  }

 private:
  bool names_marks(const Elf64_Shdr& table, const Elf64_Shdr& names, bool is_dynamic) const {
    const std::size_t count = table.sh_size / sizeof(Elf64_Sym);
    const auto* symbols = at<Elf64_Sym>(table.sh_offset, count);
    const char* text = at<char>(names.sh_offset, names.sh_size);
    if (symbols == nullptr || text == nullptr) return false;
    return std::any_of(symbols, symbols + count, [&](const Elf64_Sym& symbol) {
      if (symbol.st_name >= names.sh_size || ELF64_ST_BIND(symbol.st_info) == STB_WEAK)
        return false;
      // The program's own table names what it defines, too.
      if (is_dynamic && symbol.st_shndx != SHN_UNDEF) return false;
      const char* const name = text + symbol.st_name;
      return std::string_view(name, ::strnlen(name, names.sh_size - symbol.st_name))
          .starts_with(kMarkPrefix);
    });
  }

  template <class Object>
  const Object* at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(Object) ||
        offset % alignof(Object) != 0)
      return nullptr;
    return reinterpret_cast<const Object*>(bytes_.data() + offset);
  }

  std::vector<char> bytes_;
};

// What the loader prints: "NAME => PATH (ADDRESS)", "PATH (ADDRESS)".
std::vector<std::string> libraries_of(const std::string& interpreter, const std::string& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::unsetenv("LD_PRELOAD");
    ::execl(interpreter.c_str(), interpreter.c_str(), "--list", program.c_str(), nullptr);
    ::_exit(kExecFailed);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;) {
    if (text.size() < kListBytesMax) text.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  std::vector<std::string> paths;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string line = text.substr(start, end - start);
    start = end + 1;
    if (const std::size_t arrow = line.find(" => "); arrow != std::string::npos)
      line.erase(0, arrow + 4);
    const std::size_t slash = line.find('/');
    const std::size_t address = line.rfind(" (");
    if (slash == std::string::npos || address == std::string::npos || address < slash) continue;
    paths.push_back(line.substr(slash, address - slash));
  }
  return paths;
}

void add(std::string& list, const std::string& path) { list += (list.empty() ? "" : ", ") + path; }

}  // namespace

Result<Marks> find_marks(const std::string& program) {
  auto own = Module::read(program);
  if (!own.ok()) return own.status();
  Marks marks;
  const auto judge = [&](const std::string& path, const Module& module) {
    if (module.has_marks()) {
      marks.found = true;
      add(marks.marked, path);
    } else {
      add(marks.without, path);
    }
  };
  judge(program, own.value());
  const std::string interpreter = own.value().interpreter();
  if (interpreter.empty()) return marks;
  // The loader takes a name without a '/' for that of a library, and looks for it as for one.
  const std::string path_of_program = std::filesystem::absolute(program).string();
  for (const std::string& path : libraries_of(interpreter, path_of_program)) {
    if (is_wrapped_library(path)) continue;
    if (const auto library = Module::read(path); library.ok()) judge(path, library.value());
  }
  return marks;
}

}  // namespace pawl::cli
