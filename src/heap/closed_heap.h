// A heap as its file and its journal have it, looked at without changing either: what the next open
// would find.
#pragma once

#include <memory>

#include "heap/allocator.h"
#include "heap/check.h"
#include "heap/roots.h"
#include "medium/medium.h"

namespace pawl {

class ClosedHeap {
 public:
  // The file must be clean, or left by a crash and recoverable; nobody may write to it meanwhile.
  // Takes private memory at the heap's address: EADDRINUSE when something is there.
  static Result<std::unique_ptr<ClosedHeap>> look_at(Medium& medium);
  ~ClosedHeap();
  ClosedHeap(const ClosedHeap&) = delete;
  ClosedHeap& operator=(const ClosedHeap&) = delete;

  HeapParts parts() const { return {arena_, allocator_, roots_, path_}; }

 private:
  ClosedHeap(std::string path, char* base, std::uint64_t size_bytes, std::uint64_t size_bytes_max);

  const std::string path_;
  Arena arena_;
  Allocator allocator_{arena_};
  Roots roots_{arena_};
};

}  // namespace pawl
