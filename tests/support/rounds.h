// What a try of the crash laboratory that goes on round by round takes on its command line:
//   [--rounds N] [--seed S] [--scratch DIR]
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace pawl::test {

struct RoundsArguments {
  std::uint64_t rounds = 0;
  std::uint64_t seed = 1;  // of the first round; the others count on
  std::string scratch = ".";
};

inline RoundsArguments parse_rounds(int count, char** values, std::uint64_t rounds) {
  RoundsArguments arguments;
  arguments.rounds = rounds;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = values[i];
    if (name == "--rounds") arguments.rounds = std::strtoull(values[i + 1], nullptr, 10);
    if (name == "--seed") arguments.seed = std::strtoull(values[i + 1], nullptr, 10);
    if (name == "--scratch") arguments.scratch = values[i + 1];
  }
  return arguments;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace pawl::test
