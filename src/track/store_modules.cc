#include "track/store_modules.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "pawl/store.h"
#include "track/store_marks.h"

#ifndef PAWL_BUILDING_SHARED
// In an archive the definition is linked only where a module of the program refers to it; this
// reference alone leaves it out.
// NOLINTNEXTLINE(readability-redundant-declaration): here it is weak
extern "C" __attribute__((weak)) void pawl_stored(const void* address, size_t length);
#endif

namespace pawl {
namespace {

constexpr std::size_t kNamedModulesMax = 8;  // in an error; the rest is counted

// Beginnings of file names, up to the version.
constexpr std::array<std::string_view, 24> kWrappedLibraries = {
    "ld-linux",    "libc.so",      "libm.so",       "libmvec.so",   "libpthread.so", "libdl.so",
    "librt.so",    "libutil.so",   "libresolv.so",  "libnsl.so",    "libcrypt.so",   "libanl.so",
    "libnss_",     "libgcc_s.so",  "libstdc++.so",  "libatomic.so", "libasan.so",    "libtsan.so",
    "libubsan.so", "libclang_rt.", "linux-vdso.so", "libpawl.so",   "libpawl-pre",   "libisal.so"};

using Address = ElfW(Addr);
using Relocation = ElfW(Rela);

// What a module's dynamic section says, as far as relocations go.
struct DynamicSection {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const Relocation* relocations = nullptr;
  std::size_t relocations_bytes = 0;
  const Relocation* calls = nullptr;
  std::size_t calls_bytes = 0;
};

// The loader has made addresses of most offsets, and not of all: those of the vDSO stay.
template <class Object>
const Object* at(const dl_phdr_info& module, Address value) {
  if (value < module.dlpi_addr) value += module.dlpi_addr;
  return reinterpret_cast<const Object*>(value);  // NOLINT: an address
}

DynamicSection dynamic_section_of(const dl_phdr_info& module) {
  DynamicSection found;
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = module.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(  // NOLINT: an address
        module.dlpi_addr + segment.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          found.symbols = at<ElfW(Sym)>(module, entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          found.names = at<char>(module, entry->d_un.d_ptr);
          break;
        case DT_RELA:
          found.relocations = at<Relocation>(module, entry->d_un.d_ptr);
          break;
        case DT_RELASZ:
          found.relocations_bytes = entry->d_un.d_val;
          break;
        case DT_JMPREL:
          found.calls = at<Relocation>(module, entry->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          found.calls_bytes = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
  }
  return found;
}

bool names_a_mark(const DynamicSection& section, const Relocation* first, std::size_t bytes) {
  if (first == nullptr) return false;
  return std::any_of(first, first + bytes / sizeof *first, [&](const Relocation& relocation) {
    const auto number = relocation.r_info >> 32;
    if (number == 0) return false;
    const ElfW(Sym)& symbol = section.symbols[number];
    // What is referred to weakly may be there or not, as the archive's own reference above.
    return symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL &&
           std::strncmp(section.names + symbol.st_name, kMarkPrefix.data(), kMarkPrefix.size()) ==
               0;
  });
}

bool calls_marks(const dl_phdr_info& module) {
  const DynamicSection section = dynamic_section_of(module);
  if (section.symbols == nullptr || section.names == nullptr) return false;
  return names_a_mark(section, section.calls, section.calls_bytes) ||
         names_a_mark(section, section.relocations, section.relocations_bytes);
}

#ifdef PAWL_BUILDING_SHARED
bool is_marked(const dl_phdr_info& module) { return calls_marks(module); }
#else
bool holds(const dl_phdr_info& module, const void* address) {
  const auto wanted = reinterpret_cast<Address>(address) - module.dlpi_addr;
  return std::any_of(module.dlpi_phdr, module.dlpi_phdr + module.dlpi_phnum,
                     [&](const ElfW(Phdr) & segment) {
                       return segment.p_type == PT_LOAD && wanted >= segment.p_vaddr &&
                              wanted - segment.p_vaddr < segment.p_memsz;
                     });
}

// The module that the archive was linked into calls marks of its own.
bool is_marked(const dl_phdr_info& module) {
  static const char in_own_module = 0;
  return holds(module, &in_own_module) ? &pawl_stored != nullptr : calls_marks(module);
}
#endif

std::string path_of(const dl_phdr_info& module, bool is_program) {
  if (module.dlpi_name != nullptr && *module.dlpi_name != '\0') return module.dlpi_name;
  if (!is_program) return {};
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "the program";
}

struct Search {
  StoreModules found;
  bool is_first = true;  // the program comes first
};

int visit(dl_phdr_info* module, std::size_t /*bytes*/, void* context) {
  Search& search = *static_cast<Search*>(context);
  const std::string path = path_of(*module, search.is_first);
  search.is_first = false;
  if (path.empty()) return 0;  // the vDSO
  if (is_marked(*module)) {
    search.found.marked.push_back(path);
  } else if (!is_wrapped_library(path)) {
    search.found.unmarked.push_back(path);
  }
  return 0;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kNamedModulesMax; ++i) {
    if (i != 0) list += ", ";
    list += names[i];
  }
  if (names.size() > kNamedModulesMax)
    list += " and " + std::to_string(names.size() - kNamedModulesMax) + " more";
  return list;
}

}  // namespace

bool is_wrapped_library(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  return std::any_of(kWrappedLibraries.begin(), kWrappedLibraries.end(),
                     [&](std::string_view known) { return name.starts_with(known); });
}

StoreModules find_store_modules() {
  Search search;
  ::dl_iterate_phdr(visit, &search);
  search.found.marks_by_hand = StoreMarks::was_called_early();
  return std::move(search.found);
}

Status check_stores_are_marked() {
  const StoreModules modules = find_store_modules();
  if (!modules.marked.empty() || modules.marks_by_hand) return {};
  return Status::failure(
      EOPNOTSUPP, PAWL_ERROR_NO_STORE_MARKS,
      "the store tracker would see no store of this program: " + listed(modules.unmarked) +
          (modules.unmarked.size() == 1 ? " has" : " have") +
          " no marks; compile with pawl-clang what stores into the mapping (or call "
          "pawl_stored() there), or choose another tracker (PAWL_TRACKER=auto)");
}

}  // namespace pawl
