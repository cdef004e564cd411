// The functions with failure-atomic sections that stand in a program's file, by the numbers that
// frames have for them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cli/elf_image.h"
#include "medium/status.h"

namespace pawl::cli {

class FaseFunctions {
 public:
  // The program is not started.
  static Result<FaseFunctions> read(const std::string& program);

  // "push() at stack.c:12"; empty: the program has no such function, or region.
  std::string place(std::uint32_t function, std::uint32_t region) const;

 private:
  explicit FaseFunctions(ElfImage program) : program_(std::move(program)) {}
  std::string text_at(const void* address) const;

  ElfImage program_;  // which is loaded where its file says
};

}  // namespace pawl::cli
