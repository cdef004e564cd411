// What a process did to a direct mapping, in order: enough to say, for every moment, in which
// states a loss of power could have left the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pawl::test {

inline constexpr std::size_t kWordBytes = 8;
inline constexpr std::size_t kWordsOfLine = 8;
inline constexpr std::size_t kLineOfWords = kWordBytes * kWordsOfLine;

// A part of the file that is in use; the rest is holes.
struct Segment {
  std::uint64_t file_offset;
  std::uint64_t bytes;
};

struct MemoryEvent {
  enum class Kind : std::uint32_t {
    program_word,  // the program stored the word, at some time since the last event
    log_word,      // the run-time stored it just now, in order with others of its line
    write_back,    // of the line at offset: what it holds is durable after the thread's next fence
    fence,
    begins,        // the thread's operation `value` may take effect from here on
    acknowledged,  // the thread was told that it is done; `offset` is its result
  };
  Kind kind;
  std::uint32_t thread;
  std::uint64_t offset;  // in the segments, one behind the other
  std::uint64_t value;
};

struct MemoryTrace {
  std::uint64_t file_bytes = 0;
  std::vector<Segment> segments;
  std::vector<std::byte> at_first;  // of the segments
  std::vector<MemoryEvent> events;

  // Both throw std::runtime_error when they cannot.
  void save(const std::string& path) const;
  static MemoryTrace load(const std::string& path);
};

// Makes the file, with such bytes in the trace's segments.  Throws std::runtime_error when it
// cannot.
void write_image(const std::string& path, const MemoryTrace& of,
                 const std::vector<std::byte>& image);

}  // namespace pawl::test
