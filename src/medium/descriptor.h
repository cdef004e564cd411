// A file descriptor that closes itself, and a MediumFile over one.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "medium/medium.h"
#include "medium/own_descriptors.h"
#include "medium/shared_blocks.h"
#include "medium/unflushed_changes.h"

namespace pawl {

// Other for another mode, owner or group of a file.
constexpr std::uint64_t rights_of(mode_t mode, uid_t owner, gid_t group) {
  return (mode & 07777) + owner * 0x9e3779b97f4a7c15U + group * 0xc2b2ae3d27d4eb4fU;
}

// The way to what the calling thread has open under this number.  Not /proc/self, which is the main
// thread's: a thread may have descriptors of its own (unshare(2) with CLONE_FILES), and that one
// may have ended.
std::string link_to_descriptor(int number);
// Where that leads to; empty, with errno, when it cannot be found out.  (Here and elsewhere a path
// does not lie on the stack: that of a thread may be as small as PTHREAD_STACK_MIN.)
std::string name_of_descriptor(int number);
// The same; empty also where it leads to that file no more.
std::string name_in_force(int number);

// A number, and which file it stood for when it was asked: the program may close it, and open
// something else under it.
struct OpenFile {
  enum class State {
    open,
    gone,    // closed, or another file's by now
    hidden,  // the calls that tell fail: by a sandbox, FUSE, or a file system that is shut down
  };

  int number = -1;
  dev_t device = 0;
  ino_t inode = 0;
  // Of what is on no file system (events, say), where many share an inode: other for another kind,
  // and for another event of the kernel's.
  std::uint64_t anonymous = 0;

  // What was seen of an open one.
  struct Seen {
    std::uint64_t rights = 0;  // rights_of() the file
    bool has_name = true;      // or that is not known
    int failure = 0;           // why a hidden one could not be asked
  };

  static OpenFile of(int number);
  // Leaves errno alone.
  State state(Seen* seen = nullptr) const;
  bool is_open() const { return state() == State::open; }
};

// Of Pawl's own while it is in one: closefrom() and close_range() leave it open.  It never has the
// number of a standard stream, whoever closed those: what the program prints would get into the
// file.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) { take(number); }
  Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, {})) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    // Where the program had closed this one, the same file may have got its number anew.
    if (file_.number != other.file_.number) reset(-1);
    file_ = std::exchange(other.file_, {});
    return *this;
  }
  ~Descriptor() { reset(-1); }

  int get() const { return file_.number; }
  const OpenFile& file() const { return file_; }
  bool valid() const { return file_.number >= 0; }
  // False: the program closed it.
  bool is_open() const { return file_.is_open(); }
  OpenFile::State state(OpenFile::Seen* seen = nullptr) const { return file_.state(seen); }
  int release() {
    own_descriptors::remove(file_.number);
    return std::exchange(file_, {}).number;
  }
  // What the program closed, and has opened anew, is not closed once more.
  void reset(int number);

 private:
  void take(int number);

  OpenFile file_;
};

// While it lives, no file that this thread opens gets the number of a standard stream.  For what
// may not be closed again at once, as Descriptor does to move it: the program's locks on the file
// would go.
class StandardNumbersTaken {
 public:
  StandardNumbersTaken();
  StandardNumbersTaken(const StandardNumbersTaken&) = delete;
  StandardNumbersTaken& operator=(const StandardNumbersTaken&) = delete;
  ~StandardNumbersTaken();  // keeps errno

 private:
  std::array<bool, 3> are_taken_{};
};

class DescriptorFile final : public MediumFile {
 public:
  // `path` is for messages.
  DescriptorFile(Descriptor descriptor, std::string path);

  Status read(std::uint64_t offset, std::span<std::byte> into) override;
  Status write(std::uint64_t offset, std::span<const std::byte> from) override;
  Status flush() override;
  Status write_durably(std::uint64_t offset, std::span<const std::byte> from) override;
  void use_page_cache() override { leave_direct_io(); }
  Result<std::uint64_t> size() override;
  Status resize(std::uint64_t size_bytes) override;
  Status check_size(std::uint64_t size_bytes) override;
  Status reserve(std::uint64_t offset, std::uint64_t length) override;
  Status punch(std::uint64_t offset, std::uint64_t length) override;
  Status zero(std::uint64_t offset, std::uint64_t length) override;
  Result<std::uint64_t> find_shared(std::uint64_t offset, std::uint64_t end,
                                    const FoundShared& found) override;
  std::uint64_t shared_unit_bytes() override { return shared_.unit_bytes(descriptor_.get()); }
  std::uint64_t find_data(std::uint64_t offset) override;
  Status check_overwrite(std::uint64_t bytes) override {
    return shared_.check_overwrite(descriptor_.get(), path_, bytes);
  }
  std::uint64_t free_bytes() override;
  // As reserve(), within the file's length, of what is only stored to through a mapping: there
  // RLIMIT_FSIZE bounds nothing.
  Status reserve_for_stores(std::uint64_t offset, std::uint64_t length);
  // The same, of what may have its space already: asks for that which is missing.
  Status reserve_holes(std::uint64_t offset, std::uint64_t length);
  Result<std::uint64_t> written_prefix_bytes() override;
  Result<std::uint64_t> allocated_prefix_bytes() override;
  Status check_open() override;
  // The same, and what was seen of the file, and of the one that the lock is on.
  Status check_open(OpenFile::Seen& file, OpenFile::Seen& locked);
  Status check_named() override;

  int descriptor() const { return descriptor_.get(); }
  // Behind a change of attributes, owner or mode: the next flush in this thread takes them, too.
  void metadata_changed() { metadata_.note(); }
  void close() { descriptor_.reset(-1); }
  // Gives the descriptor up without closing it.
  int release() { return descriptor_.release(); }
  Descriptor take() { return std::move(descriptor_); }
  // From now on it is written only as long as these are open, which hold the writer's lock and its
  // notice (writer_notice.h): without them another may write the file.  A number below 0: there is
  // none.
  void write_only_with(const OpenFile& lock, const OpenFile& notice);
  void write_without_lock();

 private:
  bool leave_direct_io();
  Status check_space(std::uint64_t offset, std::uint64_t length);

  Descriptor descriptor_;
  const bool honours_dsync_;  // its file system, for a single write
  std::string path_;
  SharedBlocks shared_;
  // What may be taken back while another thread asks.
  struct Held {
    std::atomic<int> number{-1};
    dev_t device = 0;
    ino_t inode = 0;
    void hold(const OpenFile& file);
    OpenFile file() const { return {number.load(), device, inode}; }
  };
  Held lock_;
  Held notice_;
  UnflushedChanges metadata_;
  std::mutex flush_mutex_;  // one flush at a time
  int flush_error_ = 0;     // of the first that failed: none succeeds after it
};

}  // namespace pawl
