// The persistent memory of the transactions' run-time: one file, mapped shared at a fixed address,
// so that pointers in it stay valid.  It begins with the threads' logs; the rest is the program's.
//
// A process has one.  Opened and closed by one thread, while no transaction runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "medium/persistent_memory.h"
#include "medium/status.h"
#include "stm/redo_log.h"

namespace pawl::bench::stm {

inline constexpr std::size_t kThreadsMax = 64;  // that have transactions at a time

class Region {
 public:
  // What comes before the program's bytes.
  static constexpr std::size_t kDataOffset = sizeof(LogOfThread) * kThreadsMax + 4096;

  // Makes the file when there is none, else recovers it.  It holds so many bytes of the program,
  // and is as it was made: EINVAL when another number is asked for.
  static Result<std::unique_ptr<Region>> open(const std::string& path, std::size_t data_bytes);
  // Of bytes that were mapped or copied from such a file.  EUCLEAN: it is none.
  static Result<std::size_t> recover_bytes(std::span<std::byte> region, PersistentMemory& memory);
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  std::byte* begin() const { return begin_; }
  std::byte* data() const { return begin_ + kDataOffset; }
  bool holds(std::uint64_t address) const {
    return address - reinterpret_cast<std::uint64_t>(begin_) < bytes_;
  }
  LogOfThread& log(std::size_t index) const;
  PersistentMemory& memory() const { return *memory_; }
  // For tests: another than the processor's.
  void use_memory(std::unique_ptr<PersistentMemory> memory) { memory_ = std::move(memory); }
  std::span<std::byte> bytes() const { return {begin_, bytes_}; }
  std::size_t recovered() const { return recovered_; }

 private:
  Region(std::byte* begin, std::size_t bytes, std::unique_ptr<PersistentMemory> memory)
      : begin_(begin), bytes_(bytes), memory_(std::move(memory)) {}

  std::byte* const begin_;
  const std::size_t bytes_;
  std::unique_ptr<PersistentMemory> memory_;
  std::size_t recovered_ = 0;
};

// The process's: null until there is one.
Region* the_region();
void set_the_region(Region* region);

}  // namespace pawl::bench::stm
