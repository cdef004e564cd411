#include "cli/marks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/elf_image.h"
#include "cli/linked_libraries.h"
#include "track/store_modules.h"

namespace pawl::cli {
namespace {

bool names_marks(const FileBytes& bytes, const Elf64_Shdr& table, const Elf64_Shdr& names) {
  const std::size_t count = table.sh_size / sizeof(Elf64_Sym);
  const auto* const symbols = bytes.at<Elf64_Sym>(table.sh_offset, count);
  const auto* const text = bytes.at<char>(names.sh_offset, names.sh_size);
  if (symbols == nullptr || text == nullptr) return false;
  return std::any_of(symbols, symbols + count, [&](const Elf64_Sym& symbol) {
    if (symbol.st_name >= names.sh_size || ELF64_ST_BIND(symbol.st_info) == STB_WEAK) return false;
    // The program's own table names what it defines, too.
    if (table.sh_type == SHT_DYNSYM && symbol.st_shndx != SHN_UNDEF) return false;
    return std::string_view(text, names.sh_size).substr(symbol.st_name).starts_with(kMarkPrefix);
  });
}

// It calls marks of a library, or has those of the archive, which are linked only if called.
bool has_marks(const ElfImage& module) {
  const auto sections = module.sections();
  // A module has one table of each kind.
  return std::ranges::any_of(std::array{SHT_DYNSYM, SHT_SYMTAB}, [&](std::uint32_t type) {
    const auto table = std::ranges::find(sections, type, &Elf64_Shdr::sh_type);
    return table != sections.end() && table->sh_link < sections.size() &&
           names_marks(module.bytes(), *table, sections[table->sh_link]);
  });
}

void add(std::string& list, const std::string& path) { list += (list.empty() ? "" : ", ") + path; }

}  // namespace

Result<Marks> find_marks(const std::string& program) {
  const Result<ElfImage> own = ElfImage::read(program, kModuleBytesMax);
  if (!own.ok()) return own.status();
  Marks marks;
  const auto judge = [&](const std::string& path, const ElfImage& module) {
    if (has_marks(module)) {
      marks.found = true;
      add(marks.marked, path);
    } else {
      add(marks.without, path);
    }
  };
  judge(program, own.value());
  visit_linked_libraries(program, own.value(),
                         {judge, [&](const std::string& name, const std::string& why) {
                            add(marks.not_read, name + " (" + why + ")");
                          }});
  return marks;
}

}  // namespace pawl::cli
