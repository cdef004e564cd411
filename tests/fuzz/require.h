// What must hold whatever the input: else the program ends, which is how a fuzzer learns of it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace pawl::fuzz {

[[noreturn]] inline void broken(const std::string& sentence) {
  std::fprintf(stderr, "BROKEN: %s\n", sentence.c_str());
  std::abort();
}

inline void require(bool holds, const char* sentence) {
  if (!holds) broken(sentence);
}

// For a sentence that is costly to make.
template <class Sentence>
  requires std::is_invocable_r_v<std::string, Sentence>
void require(bool holds, Sentence sentence) {
  if (!holds) broken(sentence());
}

}  // namespace pawl::fuzz
