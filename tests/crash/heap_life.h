// A program that uses a heap on a recorded disk, until it ends, is killed, or the disk fails.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crash/recorder.h"
#include "heap/heap.h"
#include "heap/heap_model.h"
#include "heap/open_heaps.h"
#include "support/memory_medium.h"

namespace pawl::test {

struct HeapLifeOptions {
  HeapOptions heap;
  unsigned seed = 1;
  unsigned steps = 0;
  bool can_mark = true;
  bool is_memory = false;
  Pauses pauses = Pauses::sometimes;
  Fault fault;
};

// What a life left behind.
struct HeapLifeEnd {
  Trace trace;
  std::vector<HeapModel> models;  // by commit number: what the heap held then
  std::optional<std::size_t> failed_before;
  std::uint64_t operations = 0;
  std::string wrong;  // empty: nothing
};

// Lives on what lies on `disk`, which recovered is the file `content`, a heap that holds `model`.
HeapLifeEnd live(const HeapLifeOptions& options, const StoredDisk& disk, const Content& content,
                 const HeapModel& model);

// An empty file becomes a heap, and then one that may grow further: commits 1 and 2.
HeapLifeEnd make_and_raise(const HeapLifeOptions& options);

// What is wrong with the heap that is found on the disk; empty: nothing.  Leaves the disk alone.
std::string audit(const StoredDisk& disk, bool can_mark, const HeapOptions& options,
                  const HeapModel& model);

// A clean disk with a new heap on it.
StoredDisk new_heap(const HeapOptions& options);

}  // namespace pawl::test
