// Three programs that compute, whose stores are all outside of mappings: what marks alone cost.
// They are in modules, as the structures are.
#pragma once

#include <cstdint>

namespace pawl::bench {

inline constexpr const char* kPrograms[] = {"json", "png", "linear-algebra"};

// Every module of programs has this function, named run_program: runs the program of this number
// once.  Returns a sum of what it computed.  The first call of a program makes its input.
extern "C" using RunProgram = std::uint64_t(std::uint32_t program);

}  // namespace pawl::bench
