// A file whose bytes are loaded and stored where they are, in a window of memory that shows all of
// it, whatever its size becomes.  What is no byte of it (size, space, attributes) goes through a
// file beneath.
//
// A store into a hole takes space, and where there is none the kernel ends the process (SIGBUS). So
// only pages that are known to have space are touched; it is taken for others first, and they are
// read through the file beneath.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "medium/byte_ranges.h"
#include "medium/medium.h"
#include "medium/persistent_memory.h"
#include "medium/unflushed_changes.h"

namespace pawl {

// A range of addresses, given back when this goes; or a borrowed one.
class MemoryWindow {
 public:
  MemoryWindow() = default;
  static MemoryWindow owned(std::byte* address, std::size_t bytes) {
    bytes_owned_.fetch_add(bytes);
    return {address, bytes, true};
  }
  static MemoryWindow borrowed(std::byte* address, std::size_t bytes) {
    return {address, bytes, false};
  }
  MemoryWindow(MemoryWindow&& other) noexcept;
  MemoryWindow& operator=(MemoryWindow&& other) noexcept;
  ~MemoryWindow();

  std::byte* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  // Of all owned windows of the process.
  static std::uint64_t bytes_owned() { return bytes_owned_.load(); }

 private:
  static constinit std::atomic<std::uint64_t> bytes_owned_;

  MemoryWindow(std::byte* address, std::size_t bytes, bool is_owned)
      : address_(address), bytes_(bytes), is_owned_(is_owned) {}

  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
  bool is_owned_ = false;
};

class PersistentFile final : public MediumFile {
 public:
  // `window` shows the file that `beneath` is, from its first byte on.  `path` is for messages.
  PersistentFile(MediumFile& beneath, MemoryWindow window, std::shared_ptr<PersistentMemory> memory,
                 std::string path);
  // The same, and it owns the file beneath.
  PersistentFile(std::unique_ptr<MediumFile> beneath, MemoryWindow window,
                 std::shared_ptr<PersistentMemory> memory, std::string path);

  Status read(std::uint64_t offset, std::span<std::byte> into) override;
  Status write(std::uint64_t offset, std::span<const std::byte> from) override;
  // One fence; and a flush of the file beneath when its size, space or attributes changed.
  Status flush() override;
  Result<std::uint64_t> size() override;
  // EFBIG past the end of the window.
  Status resize(std::uint64_t size_bytes) override;
  Status reserve(std::uint64_t offset, std::uint64_t length) override;
  std::uint64_t free_bytes() override { return beneath_.free_bytes(); }
  Status punch(std::uint64_t offset, std::uint64_t length) override;
  Status zero(std::uint64_t offset, std::uint64_t length) override;
  const std::byte* in_place() const override { return window_.address(); }
  void write_in_place(std::uint64_t offset, std::span<const std::byte> from) override;
  std::uint64_t find_data(std::uint64_t offset) override { return beneath_.find_data(offset); }
  Result<std::uint64_t> allocated_prefix_bytes() override {
    return beneath_.allocated_prefix_bytes();
  }

  // Whether the range is known to have its space: then it may be loaded in place.  False, too, when
  // another thread is at it just now: in a forked child it may be so for ever.
  bool has_space(std::uint64_t offset, std::uint64_t length) const;
  // Behind a change of the file beneath, and behind one that failed: the next flush in this thread
  // flushes that, too.
  void changed_beneath() { beneath_changes_.note(); }
  // Another writer may have changed the file until now: size and space are asked for again.
  void forget();

 private:
  Status check_window(std::uint64_t offset, std::uint64_t length) const;
  Status learn();
  Status write_elsewhere(std::uint64_t offset, std::span<const std::byte> from);
  Status take_space(std::uint64_t offset, std::uint64_t length);
  void lose_space(std::uint64_t offset, std::uint64_t end);
  Status grow(std::uint64_t size_bytes);

  const std::unique_ptr<MediumFile> owned_;
  MediumFile& beneath_;
  const MemoryWindow window_;
  const std::shared_ptr<PersistentMemory> memory_;
  const std::string path_;
  UnflushedChanges beneath_changes_;
  std::atomic<bool> learned_{false};
  std::mutex size_mutex_;  // orders what changes the size
  std::atomic<std::uint64_t> size_bytes_{0};
  mutable std::mutex space_mutex_;
  ByteRanges space_;
  std::atomic<std::uint64_t> space_prefix_{0};  // from offset 0 on, to answer without the lock
};

}  // namespace pawl
