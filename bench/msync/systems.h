// The ways to make stores durable that are compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/failure.h"
#include "msync/workload.h"
#include "pawl/pawl.h"

namespace pawl::bench {

// Functions throw std::runtime_error when a system call fails.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  virtual void prepare(const Shape& shape) = 0;  // not timed
  virtual void store(const Shape& shape) = 0;    // timed: trackers have a price here too
  virtual void commit(const Shape& shape) = 0;   // timed: returns when the stores are durable
  // Waits until no work of its own goes on in the background, which would slow down the next
  // system's turn.
  virtual void settle() {}
  // Bytes put into a journal so far, and the commits that put them there.
  struct Logged {
    std::uint64_t commits = 0;
    std::uint64_t bytes = 0;
  };
  virtual Logged logged() const { return {}; }
};

struct FloorSetup {
  bool direct_io = false;
  bool awake = false;  // keeps a processor awake while it waits, as Pawl does by default
};
// One pwrite and one fdatasync of shape.record_bytes into a file that is written all over: the
// least that a commit by a journal can cost here.
std::unique_ptr<System> make_floor(const std::string& directory, const FloorSetup& setup);

// mmap(MAP_SHARED) and msync(MS_SYNC): not atomic.
std::unique_ptr<System> make_plain_msync(const std::string& directory, std::uint64_t bytes);

// The same on a file system of its own, ext4 with data=journal, on a loop device in `directory`.
std::unique_ptr<System> make_data_journal_msync(const std::string& directory, std::uint64_t bytes);

// What stands in the file when it is mapped.
enum class Contents {
  written,        // all of it, and all of it is in memory
  few_pages_used  // a sparse file with a hundred pages in use
};

struct PawlSetup {
  std::uint64_t bytes = 0;
  pawl_tracker tracker = PAWL_TRACKER_AUTO;
  pawl_apply apply = PAWL_APPLY_ASYNC;
  Contents contents = Contents::written;
  bool sleeping = false;  // keeps no processor awake while it waits
};
std::unique_ptr<System> make_pawl(const std::string& directory, const PawlSetup& setup);

}  // namespace pawl::bench
