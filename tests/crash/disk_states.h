// The states in which a power cut may leave a disk, at each moment of a trace.
//
// What was flushed is there.  Of what was not:
//
// * Each write is there or not, each sector of 512 bytes for itself; writes of the same sectors may
//   have come in any order.  A sector that was being written may hold trash.  In a journal all of
//   it may.  In a user file only bytes that the write was to change: that a disk destroys what it
//   was not asked to change, and no record holds, is a fault of another kind (media decay).
// * Changes of a file's metadata (its size, holes and mark, and the growth by a write behind its
//   end) are there up to some point in order, as a journaling file system keeps them, and without
//   regard to the data: a file may have its new size and none of the bytes, or bytes that are lost
//   because the size did not come.
// * Names (of the journals in their directory) are there up to some point in order, without regard
//   to the files.
//
// Of memory (Trace::is_memory), whose trace has single instructions:
//
// * Each aligned word of 8 bytes for itself is there or not, whether it was written past the caches
//   or into them (a line may be evicted at any time).  Words that are stored to twice keep the
//   order.  Nothing is ever trashed.
// * A fence makes durable, in all files, what was written past the caches before it, and stores
//   whose line was written back before it.  One fence is for all threads: a thread's copies have
//   left the processor once it has passed a lock, and nothing is flushed for another without one.
// * Bytes that were fenced behind a change of size or holes that is not durable are there, wherever
//   the file has them with that change or without it.
// * The file system beneath is what it is on a disk: metadata in order, and durable when flushed.
//
// A write or flush that failed leaves the bytes in doubt for good: a later flush does not bring
// them, only what is written over them decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "crash/trace.h"
#include "medium/persistent_copy.h"
#include "workload/random.h"

namespace pawl::test {

inline constexpr std::size_t kSectorBytes = 512;

// What became of a sector of a write.
enum class Fate : char { kept = 'k', dropped = 'd', trashed = 't' };

// So many sectors, one after the other, that shared a fate.
struct FateRun {
  std::uint32_t sectors;
  Fate fate;
};

struct WriteFate {
  std::size_t event;
  std::vector<FateRun> runs;  // of all its sectors
};

struct FileFate {
  std::uint32_t file;
  std::size_t changes_kept = 0;   // of the metadata
  std::vector<WriteFate> writes;  // all that were not durable, in the order in which they landed
  std::uint32_t trash_seed = 0;
};

// How a state comes from a moment of a trace: its recipe.
struct StateRecipe {
  std::size_t moment = 0;  // events that had happened
  std::size_t names_kept = 0;
  std::vector<FileFate> files;

  // As text without spaces, and back (throws std::runtime_error).
  std::string text() const;
  static StateRecipe parse(const std::string& text);
};

// Goes through a trace, and knows at each moment what is durable and what is not.
class DiskStates {
 public:
  // The trace must outlive this.
  explicit DiskStates(const Trace& trace);

  std::size_t moment() const { return moment_; }
  bool at_end() const { return moment_ == trace_.events.size(); }
  // Takes the next event.  True when it changed what may be found.
  bool advance();
  // Operations of which a power cut may take something away.
  std::size_t pending() const;

  // Commits of a volume that may be found now.
  std::vector<std::size_t> acceptable(std::size_t volume) const;

  // How many recipes there are, or one more than `bound` when there are more.  Of memory: where
  // there are more for each word, whole lines are counted.
  std::uint64_t count(std::uint64_t bound);
  // Whether those were lines, so that torn ones are not among them.
  bool counted_lines() const { return by_lines_; }
  // Recipe number 0 to count() - 1.
  StateRecipe recipe(std::uint64_t number) const;
  // Nothing that was not durable is there; all of it is; or chance decides.
  StateRecipe nothing_kept() const;
  StateRecipe all_kept() const;
  StateRecipe sample(Random& random) const;

  // The state, by volume.  Throws std::runtime_error for a recipe that does not fit.
  std::vector<StoredDisk> build(const StateRecipe& recipe) const;

 private:
  struct Pending {
    std::size_t event;
    bool in_doubt;           // no flush takes it
    bool arrives = false;    // in memory, with the next fence
    bool settled = false;    // is durable, and waits for changes before it
    std::vector<bool> gone;  // sectors that something durable has replaced; empty: none
  };
  struct File {
    Content durable;
    std::optional<Mark> mark;
    std::vector<Pending> pending;
    bool is_base = false;
  };
  struct Name {
    std::uint16_t volume;
    std::uint32_t file;  // 0: none
  };
  struct Built {
    Content content;
    std::optional<Mark> mark;
  };
  // What there is to choose in a file.
  struct Choices {
    std::uint32_t file = 0;
    std::size_t changes = 0;
    struct Sector {
      std::size_t write;  // place among the writes
      std::uint32_t sector;
      std::uint32_t count;  // of sectors that share a fate
      bool may_be_trashed;
    };
    std::vector<Sector> sectors;
    std::vector<std::size_t> overlapping;  // places of writes whose order matters
    std::size_t writes = 0;
  };

  // The part of a write that lies in some of its sectors.
  struct Part {
    std::uint64_t offset;
    std::span<const std::byte> bytes;
  };
  Part part_of(const Event& write, std::uint32_t sector, std::uint32_t sectors = 1) const;
  std::uint64_t first_sector(const Event& write) const;
  std::uint32_t sectors_of(const Event& write) const;
  bool share_a_sector(const Event& a, const Event& b) const;

  const Event& event_of(const Pending& pending) const { return trace_.events[pending.event]; }
  void land(File& file, const std::function<bool(const Pending&)>& lands);
  void land_write(File& file, std::size_t event);
  void pass_fence();
  void write_back(File& file, std::uint64_t line);
  void replace(File& file, std::size_t before, std::uint64_t offset, std::uint64_t end);
  std::vector<std::uint32_t> reachable_files() const;
  bool grows(const Pending& pending, const Event& write, std::uint64_t size) const;
  std::size_t changes_of(const File& file) const;
  Choices choices_of(std::uint32_t number) const;
  std::uint64_t count_choices(std::uint64_t bound) const;
  FileFate fate_of_all(std::uint32_t number, Fate fate) const;
  FileFate sample_file(std::uint32_t number, Random& random) const;
  Built build_file(const File& file, const FileFate* fate) const;
  void land_pieces(Content& content, const File& file, const Pending& pending,
                   const WriteFate& fate, std::uint32_t seed) const;

  const Trace& trace_;
  const std::uint64_t sector_bytes_;  // of a disk, or the word of a memory
  std::size_t moment_ = 0;
  bool by_lines_ = false;
  std::map<std::uint32_t, File> files_;
  std::vector<std::uint32_t> names_;  // durable, by volume; 0: no journal
  std::vector<Name> pending_names_;
  struct Progress {
    std::size_t begun = 0;
    std::size_t acknowledged = 0;
    std::vector<std::size_t> refused;
  };
  std::vector<Progress> progress_;
};

}  // namespace pawl::test
