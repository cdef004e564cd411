// The open heaps of this process, found by address: each allocation of a C++ container asks, so
// looking takes no lock.
#pragma once

#include <memory>

#include "heap/heap.h"
#include "pawl/heap.h"

struct pawl_heap {
  std::unique_ptr<pawl::Heap> heap;
};

namespace pawl::open_heaps {

// ENFILE when there are PAWL_HEAPS_MAX already.
Status add(pawl_heap* heap);
void remove(const pawl_heap* heap);
pawl_heap* find(const void* address);
// See pawl_heap_default.
pawl_heap* default_heap();
void set_default(pawl_heap* heap);

}  // namespace pawl::open_heaps
