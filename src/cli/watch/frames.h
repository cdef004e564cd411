// How to find a function's caller on the stack: the part of DWARF's call frame information
// (.eh_frame) that a C library on x86-64 uses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace pawl::cli::watch {

// At one instruction.  The return address stands 8 bytes below the frame's base.
struct FrameRule {
  bool base_from_rbp = false;  // else from rsp
  std::int64_t base_offset = 0;
  std::optional<std::int64_t> saved_rbp;  // where, from the base
};

class FrameTable {
 public:
  FrameTable() = default;
  // `address` is where the section stands by the file's own addresses.
  FrameTable(std::span<const char> section, std::uint64_t address);

  // Nothing where the table says nothing, or something that is not understood here.
  std::optional<FrameRule> rule_at(std::uint64_t address) const;

 private:
  struct Common {
    std::uint64_t code_factor = 1;
    std::int64_t data_factor = 1;
    std::uint8_t encoding = 0;
    bool has_augmentation = false;
    std::size_t begin = 0;  // of its instructions, in bytes_
    std::size_t end = 0;
  };
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t common = 0;  // key of commons_
    std::size_t instructions_begin = 0;
    std::size_t instructions_end = 0;
  };

  void read_common(std::size_t key, std::size_t begin, std::size_t end);
  void read_function(std::size_t common, std::size_t begin, std::size_t end);

  std::vector<char> bytes_;
  std::uint64_t address_ = 0;
  std::map<std::size_t, Common> commons_;
  std::vector<Function> functions_;  // by their begin
};

}  // namespace pawl::cli::watch
