// What a file holds, without its pages of zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pawl::test {

class FileImage {
 public:
  // Of a file of failure-atomic sections that nobody has open.
  static FileImage read(const std::string& path);
  // Makes the file anew.
  void write(const std::string& path) const;

  // The byte that is mapped there.
  std::byte byte_at(std::uint64_t address) const;

 private:
  std::uint64_t address_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::map<std::uint64_t, std::vector<std::byte>> pages_;
};

}  // namespace pawl::test
