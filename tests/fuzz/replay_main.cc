// A fuzz target without a fuzzer: runs the seeds, and each file or each directory of files that is
// named.  So what once crashed is tried by every compiler, in the ordinary build.  With --seeds
// DIRECTORY it writes the seeds there instead.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/fuzz_target.h"

namespace {

std::uint64_t inputs = 0;

void run(const std::string& name, const std::vector<std::byte>& bytes) {
  // Known when it crashes.
  std::fprintf(stderr, "%s\n", name.c_str());
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  inputs += 1;
}

std::vector<std::byte> content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes;
  for (auto at = std::istreambuf_iterator<char>(file); at != std::istreambuf_iterator<char>(); ++at)
    bytes.push_back(static_cast<std::byte>(*at));
  return bytes;
}

int write_seeds(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (const pawl::fuzz::Seed& seed : pawl::fuzz::seeds()) {
    std::ofstream file(directory / seed.name, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(seed.bytes.data()),
               static_cast<std::streamsize>(seed.bytes.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write a seed into %s\n", directory.c_str());
      return 2;
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "--seeds") return write_seeds(arguments[2]);
  for (const pawl::fuzz::Seed& seed : pawl::fuzz::seeds()) run("seed " + seed.name, seed.bytes);
  for (int i = 1; i < count; ++i) {
    if (std::filesystem::is_directory(arguments[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(arguments[i]))
        run(entry.path(), content(entry.path()));
    } else if (std::filesystem::is_regular_file(arguments[i])) {
      run(arguments[i], content(arguments[i]));
    } else {
      std::fprintf(stderr, "there is no %s\n", arguments[i]);
      return 2;
    }
  }
  std::printf("%lu inputs\n", inputs);
  return 0;
}
