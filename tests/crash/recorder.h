// Records what media do, as a trace; and makes the n-th operation fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "crash/trace.h"
#include "medium/medium.h"
#include "medium/persistent_memory.h"
#include "workload/random.h"

namespace pawl::test {

// What goes wrong.  Operations are writes, flushes, changes of size, of holes, of space, of marks
// and of names, counted from 0.
struct Fault {
  // How much of the operation is done nevertheless.  Of one that has no parts, part is all.
  enum class Done { nothing, part, all };

  std::uint64_t operation = ~std::uint64_t{0};  // never
  int error_number = 0;
  bool lasting = false;  // every operation from there on, until mend()
  Done done = Done::nothing;
  // ENOSPC is noticed when a durable write has been done and is flushed: all of it may be there.
  bool late = false;
};

// Whether flushes take time, in which other threads go on.
enum class Pauses { never, sometimes, always };

class Recorder {
 public:
  // `volumes` as they lie on the disk, or in the memory.
  Recorder(const std::vector<StoredDisk>& volumes, bool can_mark, unsigned seed, Pauses pauses,
           bool is_memory = false);

  // The same medium, recorded.  The recorder must outlive it.  Of memory, whose files must be
  // in_place(), each instruction that moves bytes into it is recorded, beneath a PersistentFile.
  std::unique_ptr<Medium> record(std::unique_ptr<Medium> real, std::uint16_t volume);

  // What Medium::open_sibling() of recorded media answers: record() of another, if all is well.
  using OpenSibling = std::function<Result<std::unique_ptr<Medium>>(const std::string& name)>;
  void open_siblings_with(OpenSibling open_sibling) { open_sibling_ = std::move(open_sibling); }

  // The program is killed: what its media are doing and would do does not happen.
  void kill(std::uint16_t volume);

  void fail(const Fault& fault);
  void mend() { fail({}); }
  std::uint64_t operations() const;
  // The event before which the fault happened; nothing when it has not.
  std::optional<std::size_t> failed_before() const;

  // A commit that may be found from here on; its number.
  std::uint64_t begin_commit(std::uint16_t volume, Content content);
  void acknowledge(std::uint16_t volume, std::uint64_t number);
  void refuse(std::uint16_t volume, std::uint64_t number);

  // From here on every write of the user's file has to find space that was there or was reserved
  // (law 7): recovery, before, may need space.
  void expect_space(std::uint16_t volume, bool expected);
  // Somebody makes a copy of the user's file that shares its blocks: a write of one takes new
  // space, if that was not reserved since.
  void share(std::uint16_t volume);
  // What was done against that; empty: nothing.
  std::string wrong() const;

  // When nothing is recorded any more.
  Trace take();

 private:
  class File;
  class Memory;
  class RecordedMedium;

  void add(Event event);
  void note_space(const Event& event);
  // Decides the fate of an operation: what it answers, whatever of it is done.
  Status judge(bool takes_space);
  // Of an operation that answers this and has no parts.
  bool is_done(const Status& answer) const {
    return answer.ok() || fault_.done != Fault::Done::nothing;
  }
  // Of its length.
  std::uint64_t part_done(const Status& answer, std::uint64_t length) const;

  OpenSibling open_sibling_;  // may be empty

  mutable std::mutex mutex_;  // guards all below, and orders what happens on the disk
  Trace trace_;
  Random random_;
  const Pauses pauses_;
  Fault fault_;
  std::uint64_t operations_ = 0;
  std::optional<std::size_t> failed_before_;
  std::uint32_t files_;
  std::vector<std::uint32_t> journals_;  // of each volume: its file, 0 when it has none
  struct Space {
    std::vector<bool> blocks;  // of the user's file, that have their space
    std::uint64_t size_bytes = 0;
    bool expected = false;
    std::vector<bool> shared{};  // had it, and share it
  };
  std::vector<Space> space_;
  std::vector<unsigned> lives_;  // of each volume: programs that were killed
  std::string wrong_;
};

}  // namespace pawl::test
