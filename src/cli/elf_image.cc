#include "cli/elf_image.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "cli/text.h"
#include "medium/descriptor.h"
#include "medium/regular_file.h"

namespace pawl::cli {
namespace {

constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Result<FileBytes> FileBytes::read(const std::string& path, std::size_t bytes_max) {
  const Result<Descriptor> opened =
      open_regular(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (!opened.ok()) return opened.status();
  const Descriptor& file = opened.value();
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return FailedCall{errno, "cannot stat " + path};
  if (!S_ISREG(status.st_mode)) return Status::failure(EISDIR, path + " is a directory");
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) {
    return Status::failure(EFBIG,
                           fmt::format("{} has {}, more than the {} that are read of it", path,
                                       size_text(status.st_size), size_text(bytes_max)));
  }
  FileBytes bytes;
  bytes.bytes_.resize(static_cast<std::size_t>(status.st_size));
  std::size_t have = 0;
  while (have < bytes.bytes_.size()) {
    const ssize_t got = ::pread(file.get(), bytes.bytes_.data() + have, bytes.bytes_.size() - have,
                                static_cast<off_t>(have));
    if (got <= 0) return FailedCall{got < 0 ? errno : EIO, "cannot read " + path};
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string FileBytes::text(std::uint64_t offset, std::size_t bytes_max) const {
  if (offset >= bytes_.size()) return {};
  const std::size_t left = bytes_.size() - static_cast<std::size_t>(offset);
  const char* const begin = bytes_.data() + offset;
  return {begin, ::strnlen(begin, std::min(left, bytes_max))};
}

Result<ElfImage> ElfImage::read(const std::string& path, std::size_t bytes_max) {
  Result<FileBytes> bytes = FileBytes::read(path, bytes_max);
  if (!bytes.ok()) return bytes.status();
  const auto* const header = bytes.value().at<Elf64_Ehdr>(0, 1);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return Status::failure(ENOEXEC, path + " is not a program of 64 bits");
  return ElfImage(std::move(bytes.value()));
}

std::span<const Elf64_Phdr> ElfImage::segments() const {
  const auto* const first = bytes_.at<Elf64_Phdr>(header().e_phoff, header().e_phnum);
  return {first, first == nullptr ? 0 : std::size_t{header().e_phnum}};
}

std::span<const Elf64_Shdr> ElfImage::sections() const {
  const auto* const first = bytes_.at<Elf64_Shdr>(header().e_shoff, header().e_shnum);
  return {first, first == nullptr ? 0 : std::size_t{header().e_shnum}};
}

std::uint64_t ElfImage::offset_of(std::uint64_t address) const {
  for (const Elf64_Phdr& segment : segments()) {
    if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  }
  return kNowhere;
}

}  // namespace pawl::cli
