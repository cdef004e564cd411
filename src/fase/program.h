// The program's own: its functions that have regions, and what tells it from every other program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fase/abi.h"
#include "fase/kept_variables.h"
#include "fase/scheme.h"
#include "medium/status.h"

namespace pawl::fase {

// Functions are numbered from 1, in the order in which the linker gathered them.
class Program {
 public:
  static Program& own();

  // Calls with what is known do nothing.
  void add(const pawl_fase_function* begin, const pawl_fase_function* end);

  // The same, of variables that frames hold.
  void keep(const pawl_fase_kept* begin, const pawl_fase_kept* end);
  const KeptVariables& kept_variables() const { return kept_variables_; }

  // Of one of its objects; where none says so it is iDO.
  void use(Scheme scheme);
  Scheme scheme() const { return scheme_; }

  bool has_functions() const { return begin_ != end_; }
  // Also such as have no function to resume: those of undo, and those that store nothing.
  bool has_sections() const { return is_registered_ || scheme_ == Scheme::undo; }
  // The function's number; it must be one of the program's.
  std::uint32_t number_of(const pawl_fase_function* function) const {
    PAWL_ASSERT(function >= begin_ && function < end_);
    return static_cast<std::uint32_t>(function - begin_) + 1;
  }
  // Null: there is none of that number.
  const pawl_fase_function* function(std::uint32_t number) const {
    return number - 1 < static_cast<std::size_t>(end_ - begin_) ? begin_ + (number - 1) : nullptr;
  }
  // Null: no function of the program begins there.
  const pawl_fase_function* find(const void* address) const;

  // ENOTSUP: FASEs of this program could not be finished by another process of it, with what to do.
  Status check() const;
  // The GNU build-id of the executable; empty when the linker made none.
  std::vector<std::byte> fingerprint() const;
  // Whether the bytes are code of the executable, as soon as it has called add().
  // Async-signal-safe.
  static bool has_code(const void* at, std::size_t count) {
    const auto offset = reinterpret_cast<std::uint64_t>(at) - code_begin_;
    return offset < code_bytes_ && count <= code_bytes_ - offset;
  }
  // Whether the program can only read what is there: constants, which another process of it has,
  // too.
  bool is_constant(const void* at) const;

 private:
  static void find_code();

  static constinit std::uint64_t code_begin_;
  static constinit std::atomic<std::uint64_t> code_bytes_;
  const pawl_fase_function* begin_ = nullptr;
  const pawl_fase_function* end_ = nullptr;
  bool is_registered_ = false;
  bool has_other_table_ = false;
  const pawl_fase_kept* kept_begin_ = nullptr;
  KeptVariables kept_variables_;
  Scheme scheme_ = Scheme::ido;
  bool has_other_scheme_ = false;
  std::vector<const pawl_fase_function*> by_address_;
};

// "0123abcd"; "none" when it is empty.
std::string fingerprint_text(std::span<const std::byte> fingerprint);

// Of the file of a program, which is not started.
Result<std::vector<std::byte>> fingerprint_of_file(const std::string& path);

}  // namespace pawl::fase
