// The image: what of a program is not in its memory file.  A header, records, and a marker that is
// written last and bound to the generation of the memory.  docs/wsp-run.md draws it byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl::wsp {

enum class RecordKind : std::uint32_t {
  system = 1,
  process = 2,
  thread = 3,
  mapping = 4,
  descriptor = 5,
  shared_signal = 6,
  origin = 7,
};

class ImageWriter {
 public:
  // Takes the marker away at once: from here on nothing is to be believed.
  ImageWriter(std::span<std::byte> image, std::uint64_t generation, std::uint64_t memory_inode);

  // A record's parts, one after the other; what does not fit is told by finish().
  void begin(RecordKind kind);
  void add(const void* bytes, std::size_t count);
  template <class T>
  void add_object(const T& object) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(&object, sizeof(object));
  }
  // Its length and its bytes.
  void add_text(const std::string& text);
  void end();

  // Completes the header.  ENOSPC when something did not fit.
  Status finish();
  // The last step: what is there is whole.  Flush the image before and behind it.
  void mark();

 private:
  std::span<std::byte> image_;
  std::uint64_t generation_;
  std::uint64_t memory_inode_;
  std::size_t used_;
  std::size_t record_ = 0;
  bool is_full_ = false;
};

// Why the program cannot be restored, for whoever asks; takes the marker away too.
void write_refusal(std::span<std::byte> image, const std::string& reason);
void remove_marker(std::span<std::byte> image);
// Of an image's file, of whatever length: false when there is certainly no save in it.
bool has_marker(int image);

class RecordReader {
 public:
  RecordReader(RecordKind kind, std::span<const std::byte> bytes) : kind_(kind), bytes_(bytes) {}
  RecordKind kind() const { return kind_; }
  // False when there is not so much; all further answers are false too.
  bool take(void* into, std::size_t count);
  template <class T>
  bool take_object(T& into) {
    static_assert(std::is_trivially_copyable_v<T>);
    return take(&into, sizeof(into));
  }
  bool take_text(std::string& into);
  std::size_t left() const { return bytes_.size(); }

 private:
  RecordKind kind_;
  std::span<const std::byte> bytes_;
};

// The records of a whole, marked image of this generation of memory.  ENODATA: there is no marker;
// the text is the reason where one was left.  EALREADY: it was restored already.  ESTALE: the
// memory is another's.  EBADMSG: damaged.
Result<std::vector<RecordReader>> read_image(std::span<const std::byte> image,
                                             std::uint64_t generation, std::uint64_t memory_inode);

}  // namespace pawl::wsp
