#include "cli/watch/elf_file.h"

#include <algorithm>
#include <span>

#include "cli/elf_image.h"

namespace pawl::cli::watch {

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;
constexpr std::size_t kNameBytesMax = 4096;

std::vector<CodeSegment> code_segments(const ElfImage& image) {
  std::vector<CodeSegment> segments;
  for (const Elf64_Phdr& segment : image.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    segments.push_back({segment.p_offset, segment.p_vaddr, segment.p_filesz});
  }
  return segments;
}

std::vector<ExportedFunction> exported_functions(const FileBytes& bytes, const Elf64_Shdr& symbols,
                                                 const Elf64_Shdr& names) {
  std::vector<ExportedFunction> functions;
  const std::size_t count = symbols.sh_size / sizeof(Elf64_Sym);
  const auto* const first = bytes.at<Elf64_Sym>(symbols.sh_offset, count);
  for (const Elf64_Sym& symbol : std::span(first, first == nullptr ? 0 : count)) {
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
    functions.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                         bytes.text(names.sh_offset + symbol.st_name, kNameBytesMax)});
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
  const Result<ElfImage> read = ElfImage::read(path, kFileBytesMax);
  if (!read.ok()) return read.status();
  const FileBytes& bytes = read.value().bytes();
  ElfFile file;
  file.segments = code_segments(read.value());
  const auto sections = read.value().sections();
  const std::size_t names = read.value().header().e_shstrndx;
  if (names >= sections.size()) return file;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_DYNSYM && section.sh_link < sections.size()) {
      file.functions = exported_functions(bytes, section, sections[section.sh_link]);
    } else if (bytes.text(sections[names].sh_offset + section.sh_name, kNameBytesMax) ==
               ".eh_frame") {
      const auto* const first = bytes.at<char>(section.sh_offset, section.sh_size);
      file.frames =
          FrameTable(std::span(first, first == nullptr ? 0 : section.sh_size), section.sh_addr);
    }
  }
  return file;
}

}  // namespace pawl::cli::watch
