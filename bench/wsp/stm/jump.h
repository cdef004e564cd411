// Where a transaction began, and how it begins anew there.
#pragma once

#include <cstdint>

namespace pawl::bench::stm {

// As the assembly in jump.cc has it: what a function must leave to its caller as it was (System V
// ABI for x86-64, 3.2.1).
struct Jump {
  std::uint64_t stack;  // of the caller, behind the call
  std::uint64_t return_address;
  std::uint64_t rbx, rbp, r12, r13, r14, r15;
};

// _ITM_beginTransaction returns once more, with this.
extern "C" [[noreturn]] void pawl_stm_resume(const Jump* jump, std::uint32_t action);

}  // namespace pawl::bench::stm
