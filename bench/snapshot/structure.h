// What is measured: one data structure under one system, seen from the runner.  The structures are
// in modules of their own (shared objects that the runner opens), so that one source can be
// compiled twice, with the marks of stores and without, and the linker merges nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pawl::bench {

inline constexpr std::size_t kPairValueBytes = 100;
// Different contents for values, so that an update changes what stands there.
inline constexpr std::size_t kPairValues = 64;
// A scan of the table reads this many pairs at most.
inline constexpr std::uint32_t kScanPairsMax = 100;

enum class Action : std::uint32_t {
  list_append,       // a node with the key
  list_remove_head,  // of a list that is not empty
  list_step,         // to the next node, and from the last to the first
  tree_insert,       // of a key that is not there; its value is its complement
  tree_lookup,       // of a key that is there
  tree_walk,         // reads every pair, depth first
  tree_erase,        // of a key that is there
  table_insert,      // of a key that is not there
  table_update,      // replaces all of a value
  table_read,        // copies a value out
  table_modify,      // reads a value, changes each of its words, and replaces it
  table_scan         // reads so many pairs, in the order of the buckets
};

// One operation.  Operations that change something are committed, each on its own, before the next.
struct Request {
  Action action = Action::list_step;
  std::uint32_t pairs = 0;  // of a scan
  std::uint64_t key = 0;
  std::uint64_t value = 0;  // which of kPairValues
};

// What the operations cost the medium, so far, where the system can say.
struct MediumUse {
  std::uint64_t lines = 0;   // cache lines written back
  std::uint64_t fences = 0;  // times it was waited for them
  std::uint64_t logged_bytes = 0;
};

// Functions throw std::runtime_error when the system fails; a structure that is not as the requests
// left it is such a failure.
class Structure {
 public:
  Structure() = default;
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;
  virtual ~Structure() = default;

  // Serves the requests one after the other.  Returns a sum of what was read: the same for every
  // system that served the same requests.
  virtual std::uint64_t serve(const Request* requests, std::size_t count) = 0;
  // As serve(), with a commit now and then; for what is not timed.
  virtual void fill(const Request* requests, std::size_t count) = 0;
  virtual MediumUse medium_use() const = 0;
};

enum class Form : std::uint32_t { list, tree, table };

struct StructureSetup {
  const char* system = nullptr;  // which; a name that the module knows
  const char* path = nullptr;    // of the file to make
  Form form = Form::list;
  std::uint64_t items_max = 0;  // nodes or pairs that it will hold at once
  std::uint64_t line_ns = 0;    // the emulated medium's latency, see profiles.h
  std::uint64_t fence_ns = 0;
};

// Every module has this function, named make_structure.  Throws Unavailable.  The caller deletes
// what it returns.
extern "C" using MakeStructure = Structure * (const StructureSetup* setup);

}  // namespace pawl::bench
