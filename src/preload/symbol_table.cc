#include "preload/symbol_table.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

namespace pawl::preload {
namespace {

// What a library's dynamic section says of its symbols.
struct Symbols {
  const ElfW(Sym) * entries = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hashes = nullptr;
};

Symbols symbols_of(const link_map& library) {
  // The loader turns offsets into addresses, but in a section that it may not write.
  const auto address_of = [&library](ElfW(Addr) value) {
    return reinterpret_cast<const void*>(  // NOLINT(performance-no-int-to-ptr)
        value < library.l_addr ? library.l_addr + value : value);
  };
  Symbols found;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const void* const address = address_of(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) found.entries = static_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) found.names = static_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) found.hashes = static_cast<const std::uint32_t*>(address);
  }
  return found;
}

std::uint32_t hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

const link_map* own_library() {
  static const char somewhere = 0;
  Dl_info self{};
  void* library = nullptr;
  return dladdr1(&somewhere, &self, &library, RTLD_DL_LINKMAP) == 0
             ? nullptr
             : static_cast<const link_map*>(library);
}

// The table: the number of buckets, the first symbol that it has, the words of a filter and a
// shift; the filter; the buckets; and for each symbol a hash, whose lowest bit ends a bucket.
void* function_in(const link_map& library, const char* name) {
  const Symbols symbols = symbols_of(library);
  if (symbols.entries == nullptr || symbols.names == nullptr || symbols.hashes == nullptr)
    return nullptr;
  const std::uint32_t bucket_count = symbols.hashes[0];
  const std::uint32_t first_symbol = symbols.hashes[1];
  const std::uint32_t filter_words = symbols.hashes[2] * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* const buckets = symbols.hashes + 4 + filter_words;
  const std::uint32_t* const hashes = buckets + bucket_count;
  const std::uint32_t hash = hash_of(name);
  if (bucket_count == 0) return nullptr;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first_symbol) return nullptr;
  for (;; ++index) {
    const ElfW(Sym)& symbol = symbols.entries[index];
    const std::uint32_t of_symbol = hashes[index - first_symbol];
    if ((of_symbol | 1U) == (hash | 1U) && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        symbol.st_shndx != SHN_UNDEF && std::strcmp(symbols.names + symbol.st_name, name) == 0) {
      return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
          library.l_addr + symbol.st_value);
    }
    if ((of_symbol & 1U) != 0) return nullptr;
  }
}

}  // namespace pawl::preload
