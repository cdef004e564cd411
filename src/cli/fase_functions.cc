#include "cli/fase_functions.h"

#include <fmt/core.h>

#include <climits>
#include <string_view>

#include "fase/abi.h"

namespace pawl::cli {
namespace {

using std::literals::operator""sv;

constexpr std::string_view kFunctionsSection = "pawl_fase_functions\0"sv;  // with its end
constexpr std::size_t kProgramBytesMax = std::size_t{1} << 30;
constexpr std::size_t kNameBytesMax = PATH_MAX;  // of a function or a source

std::uint64_t number_of(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

Result<FaseFunctions> FaseFunctions::read(const std::string& program) {
  Result<ElfImage> image = ElfImage::read(program, kProgramBytesMax);
  if (!image.ok()) return image.status();
  return FaseFunctions(std::move(image.value()));
}

std::string FaseFunctions::text_at(const void* address) const {
  return program_.bytes().text(program_.offset_of(number_of(address)), kNameBytesMax);
}

std::string FaseFunctions::place(std::uint32_t function, std::uint32_t region) const {
  const FileBytes& bytes = program_.bytes();
  const auto sections = program_.sections();
  const std::size_t names = program_.header().e_shstrndx;
  if (names >= sections.size()) return {};
  for (const Elf64_Shdr& section : sections) {
    const auto* const name =
        bytes.at<char>(sections[names].sh_offset + section.sh_name, kFunctionsSection.size());
    if (name == nullptr || std::string_view(name, kFunctionsSection.size()) != kFunctionsSection)
      continue;
    const std::uint64_t count = section.sh_size / sizeof(pawl_fase_function);
    const auto* const functions = bytes.at<pawl_fase_function>(section.sh_offset, count);
    if (functions == nullptr || function - std::uint64_t{1} >= count) return {};
    const pawl_fase_function& found = functions[function - 1];
    const auto* const regions = bytes.at<pawl_fase_region>(
        program_.offset_of(number_of(found.regions)), found.region_count);
    if (regions == nullptr || region >= found.region_count) return {};
    return fmt::format("{}() at {}:{}", text_at(found.name), text_at(found.source),
                       regions[region].line);
  }
  return {};
}

}  // namespace pawl::cli
