// The directory of a kept program: its memory file, the image of the rest, and the lock that one
// supervisor holds.
//
//   memory   byte A is byte A of the program's memory; its first page, where no program has memory,
//            says which generation of it this is
//   image    what a save writes besides: docs/wsp-run.md
//   lock     flock(2)ed by the supervisor, as `image` is: names may be removed while it runs
//   control  a socket on which it takes commands
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/directory/own_directory.h"

namespace pawl::wsp {

constexpr std::size_t kImageBytes = 16ULL << 20;

class KeptMemory {
 public:
  // Several may look at what was saved at the same time; one alone may change it.
  enum class Use { alone, to_look };
  // Whether what a directory holds, which is open where `opened` says so, is no save: then its
  // space is given up at once, else when another program takes its place.  Fails where it must
  // stay.
  using JudgeEarlier = std::function<Result<bool>(const Status& opened, const KeptMemory& earlier)>;
  // Makes the directory if there is none, takes its lock, asks `judge` under it, and makes empty
  // memory of a new generation and an image without a marker, beside what is there. EBUSY: another
  // supervisor has it.  EPERM: the directory, or a file in it, is not this user's own.  EOPNOTSUPP:
  // the files would not be in memory that survives, or are not allowed to be as long as they must
  // be.
  static Result<KeptMemory> create(const std::string& directory, const JudgeEarlier& judge);
  // Of what was made so: from here on it lies there, and nothing that was saved before.
  Status take_place();
  // ENOENT where nothing was ever kept; EBUSY as above; EEXIST, of create() too: a machine was.
  static Result<KeptMemory> open(const std::string& directory, Use use = Use::alone);

  const OwnDirectory& directory() const { return directory_; }
  int memory() const { return memory_.get(); }
  std::uint64_t device() const { return device_; }
  std::uint64_t inode() const { return inode_; }

  std::uint64_t generation() const { return generation_; }
  // What was saved of the generation before is not believed any more, durably.
  Status begin_generation();

  std::span<std::byte> image() const { return {image_, kImageBytes}; }

  // Zeros from here on, and the memory is given back.
  Status punch(std::uint64_t address, std::uint64_t bytes) const;
  // All of it.
  Status clear() const;
  // Asked between the pieces of copy(), copy_file() and reserve(), which end with EINTR when it
  // says so: what they copy may be large, and a power failure does not wait.
  void set_hurry(std::function<bool()> hurry) { hurry_ = std::move(hurry); }
  // EINTR when it says so now.
  Status must_go_on() const;
  // Within the memory; holes stay holes.  The ranges do not overlap.
  Status copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) const;
  Status write(std::uint64_t address, std::span<const std::byte> bytes) const;
  // Room for all of it, whose bytes stay as they are.  ENOSPC.
  Status reserve(std::uint64_t address, std::uint64_t bytes) const;
  // Of that range, the room that holds no bytes: those stay as they are.
  Status give_back_room(std::uint64_t address, std::uint64_t bytes) const;
  // Of the file system: then no memory of the program's may be executed, as a compiler at run time
  // makes it.
  bool is_mounted_noexec() const;
  // No further page finds room.
  bool is_full() const;
  // From a file, as far as that reaches; zeros behind it.
  Status copy_file(int file, std::uint64_t offset, std::uint64_t to, std::uint64_t bytes) const;

  // ENOENT where the names in the directory do not lead to these files any more.
  Status check_names() const;
  // Whatever was stored into memory or image is durable on return.
  Status flush_memory() const;
  Status flush_image() const;
  // Of what was saved, by whoever does nothing more with it: the next may restore it at once.
  void give_up_lock() const;

  KeptMemory(KeptMemory&& other) noexcept;
  KeptMemory& operator=(KeptMemory&&) = delete;
  KeptMemory(const KeptMemory&) = delete;
  ~KeptMemory();

 private:
  struct Header;
  explicit KeptMemory(OwnDirectory directory) : directory_(std::move(directory)) {}
  static Result<KeptMemory> take(const std::string& directory, bool makes, Use use);
  Status open_files(Use use);
  Status give_way(const JudgeEarlier& judge);
  Status identify_memory();
  Status write_generation(std::uint64_t generation);
  Status map_image();
  void unmap_image();

  std::function<bool()> hurry_;
  OwnDirectory directory_;
  Descriptor lock_;
  Descriptor memory_;
  Descriptor image_file_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  std::byte* image_ = nullptr;
  bool is_beside_ = false;
  std::uint64_t generation_ = 0;
};

}  // namespace pawl::wsp
