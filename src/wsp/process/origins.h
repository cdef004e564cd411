// What memory in the memory file would be without it, where that is not private memory of no name:
// a private mapping of a file, whose pages show the file's bytes again when they are dropped
// (madvise(2), MADV_DONTNEED), or memory that is shared, which keeps its bytes then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pawl::wsp {

struct Origin {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  bool is_file = false;      // else shared memory of no name, and what follows says nothing
  std::uint64_t offset = 0;  // of `start` in the file
  std::uint64_t inode = 0;
  std::string name;

  std::uint64_t end() const { return start + bytes; }
  std::uint64_t offset_of(std::uint64_t address) const { return offset + (address - start); }
};

constexpr std::size_t kOriginsMax = 65536;

// Ranges that do not overlap.
class Origins {
 public:
  // In place of whatever was noted of these addresses.
  void set(const Origin& origin);
  void erase(std::uint64_t start, std::uint64_t bytes);
  // Those that meet the range, in order, cut to it.
  std::vector<Origin> within(std::uint64_t start, std::uint64_t bytes) const;
  // What is noted of [from, from + bytes) is noted of the same range from `to` on, and no more of
  // the first one.
  void move(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);
  // No more may be noted, but that cutting one may make one more.
  bool is_full() const { return origins_.size() >= kOriginsMax; }
  void clear() { origins_.clear(); }

 private:
  std::map<std::uint64_t, Origin> origins_;  // by start
};

}  // namespace pawl::wsp
