// The open heaps of this process, found by address: each allocation of a C++ container asks, so
// looking takes no lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "heap/address_space.h"
#include "heap/heap.h"
#include "pawl/heap.h"

struct pawl_heap {
  std::shared_ptr<pawl::Heap> heap;
};

namespace pawl::open_heaps {

// ENFILE when there are PAWL_HEAPS_MAX already.
Status add(pawl_heap* heap);
void remove(const pawl_heap* heap);
pawl_heap* find(const void* address);
// A heap that has addresses there.
struct Found {
  std::string path;
  Addresses addresses;
  bool is_inherited = false;  // the copy that a child has of its parent's
};
std::optional<Found> find_in(const Addresses& where);
// Whichever heap only reserves the address, to grow into it, reserves nothing from there on.
void end_before(std::uint64_t address);
// See pawl_heap_default.
pawl_heap* default_heap();
void set_default(pawl_heap* heap);

}  // namespace pawl::open_heaps
