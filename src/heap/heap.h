// A persistent heap: allocator, roots and mapping under one lock.  include/pawl/heap.h has the
// contract.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "heap/allocator.h"
#include "heap/arena.h"
#include "heap/check.h"
#include "heap/roots.h"
#include "mapping/mapping.h"
#include "mapping/options.h"
#include "medium/memory_functions.h"
#include "medium/mutex.h"
#include "medium/own_process.h"

namespace pawl {

struct HeapOptions {
  std::uint64_t size_bytes_max = 0;  // 0: the default, or what the heap records
  std::uint64_t address = 0;         // of a new heap; 0: drawn
  std::string layout;
  bool verify = false;
  Options mapping;

  // EINVAL names what cannot be.
  Status validate() const;
};

class Heap {
 public:
  // Takes the file that the medium names; an empty one becomes a heap.
  static Result<std::unique_ptr<Heap>> open(std::unique_ptr<Medium> medium,
                                            const HeapOptions& options);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Status close();

  Result<char*> allocate(std::size_t size, std::size_t alignment);
  Result<char*> allocate_zeroed(std::size_t size);
  Result<char*> reallocate(char* block, std::size_t size);
  Status free(char* block);
  Result<std::size_t> usable_size(const char* block);

  Result<char*> root();
  Status set_root(char* address);
  Result<Roots::Named> named_root(std::string_view name);
  Status set_named_root(std::string_view name, Roots::Named to);

  Status sync();
  Status roll_back();

  Result<std::uint64_t> check(const ReportFault& report);
  Result<std::uint64_t> verify(const ReportFault& report);
  Status information(pawl_heap_information& information);
  Status statistics(MappingStatistics& statistics) const;

  // Gives up the addresses from there on, where the heap has no byte yet, to another heap; nothing
  // where it has.  Returns how far it can grow now; the addresses are in `left`.
  Result<std::uint64_t> end_before(std::uint64_t address, memory::LeftPlace& left);

  const std::string& path() const { return parts_.path; }
  // EPERM in a child, however it was made.
  Status in_own_process() const { return mapping_->in_own_process(); }
  // In a child with a copy of the memory: takes the copy away.
  bool is_of_other_memory() const { return mapping_->is_of_other_memory(); }
  Status unmap_copy() const;

  char* base() const { return arena_.base(); }
  std::uint64_t size_bytes_max() const { return arena_.size_bytes_max(); }
  void* resource_place() const { return arena_.header().resource.data(); }

 private:
  Heap(std::unique_ptr<Mapping> mapping, const HeapOptions& options, char* base,
       std::uint64_t size_bytes, std::uint64_t size_bytes_max);

  static Result<heap_format::Identity> identity_in(Mapping& mapping, const HeapOptions& options);
  static Result<std::unique_ptr<Heap>> open_at(std::unique_ptr<Mapping>& mapping,
                                               const HeapOptions& options);
  Status bring_up_identity(const heap_format::Identity& identity, std::uint64_t size_bytes_max,
                           const std::string& layout);

  template <class Outcome, class Call>
  Outcome in_order(Call call);
  // A child that shares the parent's memory is refused by the mapping.
  bool is_in_child() const { return forked_.load() || !owner_.has_this_memory(); }
  Status usable() const { return is_in_child() ? why_not_usable() : Status{}; }
  Status why_not_usable() const;
  Status note(Status status);
  Result<std::uint64_t> find_stray_pointers(const ReportFault& report) const;
  Result<std::uint64_t> find_held_locks(const ReportFault& report) const;
  Status verify_before_sync() const;

  Mutex mutex_;
  const std::shared_ptr<Mapping> mapping_;
  const bool verify_;
  Arena arena_;
  Allocator allocator_;
  Roots roots_;
  const HeapParts parts_;
  // The first misuse since the last sync, or damage that was found: until a rollback nothing is
  // committed.
  Status misuse_;
  const OwnProcess owner_;
  std::atomic<bool> forked_{false};  // in a child of fork()
};

// In a forked child the lock may be held for ever, so that is asked first.
template <class Outcome, class Call>
Outcome Heap::in_order(Call call) {
  if (is_in_child()) return why_not_usable();
  const std::lock_guard lock(mutex_);
  return call();
}

}  // namespace pawl
