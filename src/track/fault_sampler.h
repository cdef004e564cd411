// Samples of every page fault of this process, from perf software events.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl {

// One ring a processor; the events of all threads on that processor write into it.  Not
// thread-safe.
class FaultSampler {
 public:
  // Opens the events for every thread there is; threads made later inherit them, forked processes
  // do not.  A thread made just meanwhile may be missed: its faults are counted but not sampled.
  static Result<std::unique_ptr<FaultSampler>> attach(std::size_t descriptors_max);
  ~FaultSampler();
  FaultSampler(const FaultSampler&) = delete;
  FaultSampler& operator=(const FaultSampler&) = delete;

  // Calls visit(address) for each sample not yet read; returns their number.
  template <class Visit>
  std::uint64_t drain(Visit&& visit) {
    std::uint64_t samples = 0;
    for (Ring& ring : rings_) {
      const std::uint64_t head = __atomic_load_n(&ring.control->data_head, __ATOMIC_ACQUIRE);
      std::uint64_t tail = ring.tail;
      while (tail != head) {
        // Records are multiples of 8 bytes, and so is the ring: no field is split by the wrap.
        const auto* header =
            reinterpret_cast<const perf_event_header*>(ring.data + (tail & (ring.size_bytes - 1)));
        PAWL_ASSERT(header->size >= sizeof *header && header->size % 8 == 0);
        if (header->type == PERF_RECORD_SAMPLE) {
          ++samples;
          visit(*reinterpret_cast<const std::uint64_t*>(
              ring.data + ((tail + sizeof *header) & (ring.size_bytes - 1))));
        }
        tail += header->size;
      }
      if (tail == ring.tail) continue;
      ring.tail = tail;
      __atomic_store_n(&ring.control->data_tail, tail, __ATOMIC_RELEASE);
    }
    return samples;
  }

  // Closes the descriptors and no more: the rings are not mapped in a forked child.
  void abandon_in_child();

 private:
  struct Ring {
    perf_event_mmap_page* control = nullptr;
    const char* data = nullptr;
    std::uint64_t size_bytes = 0;  // of data; a power of two
    std::uint64_t tail = 0;
    int descriptor = -1;
    int processor = 0;
  };

  FaultSampler() = default;
  Status open_thread(int thread_id, int processors);
  Result<Descriptor> open_event(std::uint64_t event, int thread_id, int processor);
  Status map_ring(int descriptor, int processor);

  std::vector<Ring> rings_;
  std::vector<Descriptor> descriptors_;
  bool exclude_kernel_ = false;
};

}  // namespace pawl
