// What a fuzz target is made of: one entry, called by libFuzzer or by replay_main.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace pawl::fuzz {

// An input with a journal in it begins with so many bytes of other things.
extern const std::size_t kPrologueBytes;

// Inputs to begin with, made by Pawl itself.
struct Seed {
  std::string name;
  std::vector<std::byte> bytes;
};
std::vector<Seed> seeds();

}  // namespace pawl::fuzz
