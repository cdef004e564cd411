#include "cli/fase_functions.h"

#include <elf.h>
#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "fase/abi.h"

namespace pawl::cli {
namespace {

using std::literals::operator""sv;

constexpr std::string_view kFunctionsSection = "pawl_fase_functions\0"sv;  // with its end
constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

std::uint64_t number_of(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

Result<FaseFunctions> FaseFunctions::read(const std::string& program) {
  std::ifstream file(program, std::ios::binary);
  FaseFunctions functions;
  functions.bytes_.assign(std::istreambuf_iterator<char>(file), {});
  const auto* const header = functions.at<Elf64_Ehdr>(0, 1);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return Status::failure(ENOEXEC, program + " is not a program of 64 bits");
  }
  return functions;
}

template <class Object>
const Object* FaseFunctions::at(std::uint64_t offset, std::uint64_t count) const {
  if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(Object) ||
      offset % alignof(Object) != 0) {
    return nullptr;
  }
  return reinterpret_cast<const Object*>(bytes_.data() + offset);
}

std::uint64_t FaseFunctions::offset_of(std::uint64_t address) const {
  const auto* const header = at<Elf64_Ehdr>(0, 1);
  const auto* const segments = at<Elf64_Phdr>(header->e_phoff, header->e_phnum);
  for (std::size_t i = 0; segments != nullptr && i < header->e_phnum; ++i) {
    const Elf64_Phdr& segment = segments[i];
    if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  }
  return kNowhere;
}

std::string FaseFunctions::text_at(std::uint64_t address) const {
  const std::uint64_t offset = offset_of(address);
  if (offset >= bytes_.size()) return {};
  const char* const text = bytes_.data() + offset;
  return {text, ::strnlen(text, bytes_.size() - offset)};
}

std::string FaseFunctions::place(std::uint32_t function, std::uint32_t region) const {
  const auto* const header = at<Elf64_Ehdr>(0, 1);
  const auto* const sections = at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (sections == nullptr || header->e_shstrndx >= header->e_shnum) return {};
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const std::uint64_t name = sections[header->e_shstrndx].sh_offset + sections[i].sh_name;
    const char* const text = at<char>(name, kFunctionsSection.size());
    if (text == nullptr || std::string_view(text, kFunctionsSection.size()) != kFunctionsSection)
      continue;
    const std::uint64_t count = sections[i].sh_size / sizeof(pawl_fase_function);
    const auto* const functions = at<pawl_fase_function>(sections[i].sh_offset, count);
    if (functions == nullptr || function - std::uint64_t{1} >= count) return {};
    const pawl_fase_function& found = functions[function - 1];
    const auto* const regions =
        at<pawl_fase_region>(offset_of(number_of(found.regions)), found.region_count);
    if (regions == nullptr || region >= found.region_count) return {};
    return fmt::format("{}() at {}:{}", text_at(number_of(found.name)),
                       text_at(number_of(found.source)), regions[region].line);
  }
  return {};
}

}  // namespace pawl::cli
