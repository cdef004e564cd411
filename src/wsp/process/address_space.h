// Which addresses of one part of an address space are in use.  Chooses places for new mappings:
// the next that is free, so that a place is not given again soon, and neighbours become one
// mapping.  Where the first is says who makes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace pawl::wsp {

class AddressSpace {
 public:
  AddressSpace(std::uint64_t start, std::uint64_t end) : AddressSpace(start, end, start) {}
  AddressSpace(std::uint64_t start, std::uint64_t end, std::uint64_t first)
      : start_(start), end_(end), cursor_(first), free_{{start, end}} {}

  // Nothing when no free range is long enough.
  std::optional<std::uint64_t> take(std::uint64_t length);
  // All of it must be free.
  bool take_exactly(std::uint64_t start, std::uint64_t length);
  // Those of these addresses that are in this part.
  void mark_used(std::uint64_t start, std::uint64_t length);
  void mark_free(std::uint64_t start, std::uint64_t length);

  bool contains(std::uint64_t address) const { return address >= start_ && address < end_; }

 private:
  std::uint64_t start_;
  std::uint64_t end_;
  std::uint64_t cursor_;
  std::map<std::uint64_t, std::uint64_t> free_;  // from start to end
};

}  // namespace pawl::wsp
