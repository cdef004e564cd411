// What is used and what is free, counted by a walk through the bookkeeping: nothing is counted
// while the heap is used, which would dirty a line with each allocation.
#pragma once

#include "heap/check.h"
#include "pawl/heap.h"

namespace pawl {

// EUCLEAN when the bookkeeping cannot be walked through.
Status count_heap(const HeapParts& heap, pawl_heap_information& information);

}  // namespace pawl
