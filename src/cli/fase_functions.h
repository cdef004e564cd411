// The functions with failure-atomic sections that stand in a program's file, by the numbers that
// frames have for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl::cli {

class FaseFunctions {
 public:
  // The program is not started, and nothing outside of its file is looked at.
  static Result<FaseFunctions> read(const std::string& program);

  // "push() at stack.c:12"; empty: the program has no such function, or region.
  std::string place(std::uint32_t function, std::uint32_t region) const;

 private:
  template <class Object>
  const Object* at(std::uint64_t offset, std::uint64_t count) const;
  // Of an address in the program, which is loaded where its file says.
  std::uint64_t offset_of(std::uint64_t address) const;
  std::string text_at(std::uint64_t address) const;

  std::vector<char> bytes_;
};

}  // namespace pawl::cli
