#include "cli/watch/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "medium/regular_file.h"

namespace pawl::cli::watch {

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;
constexpr std::size_t kSectionsMax = 1024;

class Bytes {
 public:
  explicit Bytes(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  bool get(std::uint64_t offset, T& into) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(&into, bytes_.data() + offset, sizeof(T));
    return true;
  }
  std::span<const char> part(std::uint64_t offset, std::uint64_t length) const {
    if (offset > bytes_.size() || bytes_.size() - offset < length) return {};
    return std::span(bytes_).subspan(offset, length);
  }
  std::string text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const char* const begin = bytes_.data() + offset;
    return {begin, ::strnlen(begin, bytes_.size() - offset)};
  }

 private:
  std::vector<char> bytes_;
};

Result<Bytes> read_whole(const std::string& path) {
  const Result<Descriptor> file = open_regular(path, O_RDONLY | O_CLOEXEC);
  if (!file.ok()) return file.status();
  std::vector<char> bytes;
  std::vector<char> piece(std::size_t{1} << 20);
  for (ssize_t got = 0; (got = ::read(file.value().get(), piece.data(), piece.size())) > 0;) {
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + got);
    if (bytes.size() > kFileBytesMax) {
      return Status::failure(EFBIG,
                             path + " is larger than 64 MiB, more than is read of a library");
    }
  }
  return Bytes(std::move(bytes));
}

std::vector<CodeSegment> code_segments(const Bytes& bytes, const Elf64_Ehdr& header) {
  std::vector<CodeSegment> segments;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!bytes.get(header.e_phoff + i * sizeof(segment), segment)) break;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    segments.push_back({segment.p_offset, segment.p_vaddr, segment.p_filesz});
  }
  return segments;
}

std::vector<ExportedFunction> exported_functions(const Bytes& bytes, const Elf64_Shdr& symbols,
                                                 const Elf64_Shdr& names) {
  std::vector<ExportedFunction> functions;
  const std::uint64_t count = symbols.sh_size / sizeof(Elf64_Sym);
  for (std::uint64_t i = 0; i < count; ++i) {
    Elf64_Sym symbol{};
    if (!bytes.get(symbols.sh_offset + i * sizeof(symbol), symbol)) break;
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
    functions.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                         bytes.text(names.sh_offset + symbol.st_name)});
  }
  std::ranges::sort(functions, {}, &ExportedFunction::begin);
  return functions;
}

}  // namespace

std::uint64_t ElfFile::address_of_offset(std::uint64_t file_offset) const {
  for (const CodeSegment& segment : segments) {
    if (file_offset >= segment.file_offset && file_offset - segment.file_offset < segment.length) {
      return segment.address + (file_offset - segment.file_offset);
    }
  }
  return 0;
}

std::vector<std::string> ElfFile::names_at(std::uint64_t address) const {
  std::vector<std::string> found;
  auto next = std::ranges::upper_bound(functions, address, {}, &ExportedFunction::begin);
  if (next == functions.begin()) return found;
  const std::uint64_t begin = std::prev(next)->begin;
  while (next != functions.begin()) {
    --next;
    if (next->begin != begin) break;
    if (address < next->end) found.push_back(next->name);
  }
  return found;
}

std::set<std::string> ElfFile::names() const {
  std::set<std::string> all;
  for (const ExportedFunction& function : functions) all.insert(function.name);
  return all;
}

Result<ElfFile> read_elf_file(const std::string& path) {
  Result<Bytes> read = read_whole(path);
  if (!read.ok()) return read.status();
  const Bytes& bytes = read.value();
  Elf64_Ehdr header{};
  if (!bytes.get(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return Status::failure(ENOEXEC, path + " is no 64-bit ELF file");
  }
  ElfFile file;
  file.segments = code_segments(bytes, header);
  std::vector<Elf64_Shdr> sections;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header.e_shnum, kSectionsMax); ++i) {
    Elf64_Shdr section{};
    if (!bytes.get(header.e_shoff + i * sizeof(section), section)) break;
    sections.push_back(section);
  }
  if (header.e_shstrndx >= sections.size()) return file;
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_DYNSYM && section.sh_link < sections.size()) {
      file.functions = exported_functions(bytes, section, sections[section.sh_link]);
    } else if (bytes.text(names.sh_offset + section.sh_name) == ".eh_frame") {
      file.frames = FrameTable(bytes.part(section.sh_offset, section.sh_size), section.sh_addr);
    }
  }
  return file;
}

}  // namespace pawl::cli::watch
