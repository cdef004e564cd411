// The bytes of a program's or a library's file, and what stands where in them.  Nothing outside of
// the file is looked at, whatever it says.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl::cli {

class FileBytes {
 public:
  // Opens nothing but a regular file, and waits for nobody who has a lease on it.  EFBIG: it has
  // more than `bytes_max`.
  static Result<FileBytes> read(const std::string& path, std::size_t bytes_max);

  std::size_t size() const { return bytes_.size(); }
  // Null where they do not all lie in the file, or not on their boundary.
  template <class Object>
  const Object* at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(Object) ||
        offset % alignof(Object) != 0)
      return nullptr;
    return reinterpret_cast<const Object*>(bytes_.data() + offset);
  }
  // Up to its NUL, the end of the file or so many bytes.
  std::string text(std::uint64_t offset, std::size_t bytes_max) const;

 private:
  std::vector<char> bytes_;
};

class ElfImage {
 public:
  // ENOEXEC: it is no ELF file of 64 bits.
  static Result<ElfImage> read(const std::string& path, std::size_t bytes_max);

  const FileBytes& bytes() const { return bytes_; }
  const Elf64_Ehdr& header() const { return *bytes_.at<Elf64_Ehdr>(0, 1); }
  std::span<const Elf64_Phdr> segments() const;
  std::span<const Elf64_Shdr> sections() const;
  // Of the byte that is loaded at this address; beyond the file where it says of none.
  std::uint64_t offset_of(std::uint64_t address) const;

 private:
  explicit ElfImage(FileBytes bytes) : bytes_(std::move(bytes)) {}
  FileBytes bytes_;
};

}  // namespace pawl::cli
