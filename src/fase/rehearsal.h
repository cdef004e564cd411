// Regions that are executed again for a test, as recovery would: whatever comes out must be the
// same.
//
// When a thread reaches the end of a region (the first of the run-time's events after the frame),
// the region is resumed on top of it, from the frame's live-ins.  It has to come to the same event,
// with the same live-ins, and leave the same bytes in persistent memory; else the program is ended.
// Other threads see nothing of it: what the region stores is stored already, and under locks.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fase/abi.h"
#include "fase/sink.h"

namespace pawl::fase {

struct Site;

inline constexpr const char* kTwiceVariable = "PAWL_FASE_TWICE";

// Where regions end.
enum class EventKind : std::uint8_t { cut, call, function_return, lock, unlock, wait };

class Rehearsal {
 public:
  // Of threads that come here from now on: how many of a hundred regions; 0: none.
  static void set_percent(int percent);
  // Null when none is.
  static std::unique_ptr<Rehearsal> make();

  // A frame was logged: the region begins.
  void begin(const Site& site);
  // Nothing of it will be executed again.
  void forget() { region_.reset(); }
  // Before an event happens.  `object` is what it happens to.  Does not return when the region is
  // being executed again.
  void reached(EventKind kind, std::uint64_t object, const Site* site);

  bool is_on() const { return is_on_; }

  // In a region, the first time and again.
  void stored(const void* at, std::size_t count);
  void allocated(std::uint64_t block, std::uint64_t size_bytes);
  void freed(std::uint64_t block);
  // Only again: what the first time had.
  std::uint64_t allocate_again(std::uint64_t size_bytes);
  void free_again(std::uint64_t block);
  void* sink(std::size_t count);

 private:
  struct Event {
    EventKind kind = EventKind::cut;
    std::uint64_t object = 0;
    const pawl_fase_function* function = nullptr;
    std::uint32_t region = 0;
    std::vector<std::byte> live_ins;
  };
  struct Range {
    const std::byte* at;
    std::vector<std::byte> bytes;
  };
  struct Block {
    std::uint64_t address;
    std::uint64_t size_bytes;  // kFreed: it was freed
  };
  static constexpr std::uint64_t kFreed = ~std::uint64_t{0};
  struct Region {
    const pawl_fase_function* function;
    std::uint32_t number;
    std::vector<std::byte> live_ins;
    std::vector<Range> stored;  // without their bytes until it is executed again
    std::set<std::uint64_t> lines;
    std::size_t bytes = 0;
    std::vector<Block> blocks;
  };

  static Event describe(EventKind kind, std::uint64_t object, const Site* site);
  bool draws();
  Event execute(unsigned char fill);
  void resume(unsigned char fill);
  void expect_same_bytes() const;
  void expect_same(const Event& first, const Event& again, const Event& once_more) const;
  Block next_block();
  [[noreturn]] void differs(const std::string& how) const;

  std::optional<Region> region_;
  bool is_on_ = false;
  Event again_;
  std::size_t blocks_again_ = 0;
  Sink sink_;
  std::uint64_t random_;
  std::jmp_buf back_;

  explicit Rehearsal(std::uint64_t seed) : random_(seed) {}
};

}  // namespace pawl::fase
