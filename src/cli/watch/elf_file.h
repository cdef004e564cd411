// What is read from a shared library's file: the functions that it exports, how its code is mapped,
// and how its stack frames are unwound.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cli/watch/frames.h"
#include "medium/status.h"

namespace pawl::cli::watch {

struct ExportedFunction {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name;
};

struct CodeSegment {
  std::uint64_t file_offset = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
};

struct ElfFile {
  std::vector<ExportedFunction> functions;  // by their begin
  std::vector<CodeSegment> segments;
  FrameTable frames;

  // The address that the file gives to the byte at this offset; 0 when it is no code.
  std::uint64_t address_of_offset(std::uint64_t file_offset) const;
  // All names of the function that holds the address: one has several.
  std::vector<std::string> names_at(std::uint64_t address) const;
  std::set<std::string> names() const;
};

// At most 64 MiB are read.  Whatever the file says, nothing outside it is looked at.
Result<ElfFile> read_elf_file(const std::string& path);

}  // namespace pawl::cli::watch
