// What the program may leave in its file, in memory that it shares with the process that kills it.
//
// The file has a part for each thread, and behind them a tail whose size changes.  A part is known
// by the versions that a recovery may find: the one that was acknowledged last, and those that were
// asked for since.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pawl::test::calls {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kThreads = 3;
inline constexpr std::size_t kPartPages = 8;
inline constexpr std::size_t kPartBytes = kPartPages * kPage;
inline constexpr std::size_t kTail = kThreads;  // the part of the tail
inline constexpr std::size_t kParts = kThreads + 1;
inline constexpr std::size_t kTailOffset = kThreads * kPartBytes;
inline constexpr std::uint32_t kVersions = 8;

struct Version {
  std::uint64_t bytes;  // of the part, in the file
  char content[kPartBytes];
};

// Written by one thread at a time, and readable after its death at any moment.
class Part {
 public:
  const Version& last() const { return versions_[(first() + count() - 1) % kVersions]; }
  // One more, and it has to be waited for.
  bool is_full() const { return count() + 1 >= kVersions; }
  // To be filled, and then asked_for().
  Version& next() { return versions_[(first() + count()) % kVersions]; }
  void asked_for() { set(first(), count() + 1); }
  // All that was asked for is durable.
  void acknowledged() { set((first() + count() - 1) % kVersions, 1); }
  template <class Is>
  bool has_version(Is is) const {
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (is(versions_[(first() + i) % kVersions])) return true;
    }
    return false;
  }

 private:
  std::uint32_t first() const { return state_.load() >> 16; }
  std::uint32_t count() const { return state_.load() & 0xffff; }
  void set(std::uint32_t first, std::uint32_t count) { state_.store(first << 16 | count); }

  std::atomic<std::uint32_t> state_{0};
  Version versions_[kVersions];
};

struct Shared {
  std::atomic<bool> is_ready;  // the first versions are durable
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> commits;
  Part parts[kParts];
};

}  // namespace pawl::test::calls
