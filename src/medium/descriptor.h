// A file descriptor that closes itself, and a MediumFile over one.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>
#include <utility>

#include "medium/medium.h"
#include "medium/own_descriptors.h"
#include "medium/shared_blocks.h"
#include "medium/unflushed_changes.h"

namespace pawl {

// Of Pawl's own while it is in one: closefrom() and close_range() leave it open.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) { own_descriptors::add(number); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(-1); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  int release() {
    const int number = number_;
    number_ = -1;
    own_descriptors::remove(number);
    return number;
  }
  void reset(int number);

 private:
  int number_ = -1;
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
  Status reserve(std::uint64_t offset, std::uint64_t length) override;
  Status punch(std::uint64_t offset, std::uint64_t length) override;
  Status zero(std::uint64_t offset, std::uint64_t length) override;
  Result<std::uint64_t> find_shared(std::uint64_t offset, std::uint64_t end,
                                    const FoundShared& found) override;
  Status check_overwrite(std::uint64_t bytes) override {
    return shared_.check_overwrite(descriptor_.get(), path_, bytes);
  }
  Result<std::uint64_t> allocated_prefix_bytes() override;
  Status check_open() override;

  int descriptor() const { return descriptor_.get(); }
  // Behind a change of attributes, owner or mode: the next flush in this thread takes them, too.
  void metadata_changed() { metadata_.note(); }
  void close() { descriptor_.reset(-1); }
  // Gives the descriptor up without closing it.
  int release() { return descriptor_.release(); }

 private:
  bool leave_direct_io();
  Status check_space(std::uint64_t offset, std::uint64_t length) const;

  Descriptor descriptor_;
  std::string path_;
  SharedBlocks shared_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  UnflushedChanges metadata_;
  std::mutex flush_mutex_;  // one flush at a time
  int flush_error_ = 0;     // of the first that failed: none succeeds after it
};

}  // namespace pawl
