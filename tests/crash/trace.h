// What a run did to its disk, in order, and what it promised meanwhile: enough to say, for every
// moment of the run, in which states a power cut could have left the disk and which contents may
// then be found.
//
// A disk holds one or more volumes, each a user file and its journal.  Files are numbered: those of
// the users first, in the order of their volumes, then every journal there ever was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/memory_medium.h"

namespace pawl::test {

struct Event {
  enum class Kind : std::uint8_t {
    write,           // bytes at offset; into memory: past the caches, a fence makes them durable
    store,           // bytes at offset, into the cache of memory
    write_back,      // of the cache line at offset: a fence makes it durable
    fence,           // of the processor: for all files
    resize,          // to offset
    zero,            // length bytes from offset; punched or not, they read as zeros
    mark,            // is set, or cleared
    reserve,         // changes nothing that can be seen
    flush_begins,    // of the file
    flush_ends,      // with event `offset`; what the file was told before that one is durable
    flush_fails,     // with event `offset`; what was written before it may never get there
    write_lands,     // event `offset`, a write, is durable by itself
    make_journal,    // the file begins to exist, without its name
    name_journal,    // the volume's journal is now this file
    remove_journal,  // the volume has no journal now
    names_land,      // all names so far are durable
    commit_begins,   // number `offset` of the volume may be found from here on
    acknowledged,    // numbers up to `offset` are durable
    refused,         // number `offset` was refused for want of space: it is not to be found
  };

  Kind kind;
  bool punches = false;  // zero: gives its space back
  bool failed = false;   // a write that reported an error: what of it is there, nobody knows
  std::uint16_t volume = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  std::optional<Mark> marked;

  std::uint64_t end() const { return offset + (bytes == nullptr ? length : bytes->size()); }
};

struct Volume {
  StoredDisk at_first;
  // By commit number; 0 is what the file was when the run began.
  std::vector<Content> commits;
};

struct Trace {
  bool can_mark = true;
  bool is_memory = false;  // and no disk
  std::vector<Volume> volumes;
  std::vector<Event> events;

  // Both throw std::runtime_error when they cannot.
  void save(const std::string& path) const;
  static Trace load(const std::string& path);
};

// One line for people.
std::string describe(const Event& event);

}  // namespace pawl::test
