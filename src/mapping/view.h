// The working view: the memory that the program loads from and stores to.  From left to right:
//
//   [ private mapping of the base | anonymous memory: growth | past the end: SIGBUS ]
//   start                    file_end                 accessible_end              end
//
// Behind growth that a commit put into the base, a window that was made longer shows the base
// again.
//
// The kernel never writes any of it back to the file (law 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mapping/protected_part.h"
#include "medium/medium.h"
#include "medium/memory_functions.h"
#include "track/tracker.h"

namespace pawl {

inline constexpr std::size_t kProtectedPartsMax = 4096;

class View {
 public:
  // The owner's tracker; see take_over().
  View(Medium& medium, const std::unique_ptr<Tracker>& tracker)
      : medium_(medium), tracker_(tracker) {}
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { unmap(); }

  // The base up to `base_bytes` shows the committed image; from there to `size_bytes` the file is
  // new and zero.
  Status map(void* address, std::size_t length, int protection, int flags,
             std::uint64_t file_offset, std::uint64_t base_bytes, std::uint64_t size_bytes);
  void unmap();
  // The memory stays as it is, and is the program's own.
  void leave() noexcept;
  // Unmaps what lies behind the first so many bytes.
  void shorten(std::size_t length, memory::LeftPlace& left);
  bool mapped() const { return address_ != nullptr; }
  // The window of another view of the same file, which has none then.  The memory is not touched,
  // and goes on to be watched by the same tracker: its owner has that, too.
  void take_over(View& other);
  // The same, of a view of what lies behind in file and memory.
  void append(View& behind);

  // The file's size changed: pages become accessible (and zero), or go.  Failing, it leaves all as
  // it was, and can be called again, unless it answers EIO.
  Status set_size(std::uint64_t size_bytes) noexcept;
  // Gives back private memory: what can be touched shows the base again, which must be the
  // committed image, and as long.  The kernel may refuse that; EIO is final.
  Status show_base();
  // The same for some pages of the file part, which go on to be watched.  False where the kernel
  // refuses, as of pages that are locked.
  bool show_base_pages(std::uint64_t first_page, std::uint64_t page_count) const;
  // mprotect(2) of whole pages of the window; kept through all calls.
  Status protect(char* address, std::size_t length, int protection);
  // For a moment, one page otherwise than the program asked for.
  Status open_page(std::uint64_t page, int protection) {
    const std::size_t from = page * kPageBytes - file_offset_;
    return protect_memory(from, from + kPageBytes, protection);
  }
  // EFAULT when pages [first_page, end_page) are not all mapped: a system call that passed Pawl by
  // took some away, with what was stored there.
  Status check_mapped(std::uint64_t first_page, std::uint64_t end_page) const;
  // What the program asked for, for a file page of the window.
  int protection_at(std::uint64_t page) const;
  // All of the window has protection().
  bool has_one_protection() const { return parts_.empty(); }
  // In order, not overlapping, and neighbours differ.
  const std::vector<ProtectedPart>& parts() const { return parts_; }

  char* address() const { return address_; }
  std::size_t length() const { return length_; }
  int protection() const { return protection_; }
  std::uint64_t file_offset() const { return file_offset_; }
  std::uint64_t file_end_offset() const { return file_offset_ + length_; }

  // File pages that the program can touch now.
  std::uint64_t first_page() const { return file_offset_ / kPageBytes; }
  std::uint64_t accessible_end_page() const { return (file_offset_ + accessible_) / kPageBytes; }
  // Of those, the ones that the base backs end here.
  std::uint64_t file_end_page() const { return (file_offset_ + file_part_) / kPageBytes; }
  bool accessible(std::uint64_t page) const {
    return mapped() && page >= first_page() && page < accessible_end_page();
  }
  // Accessible, once the file is long enough.
  bool covers(std::uint64_t page) const {
    return mapped() && page >= first_page() && page < file_end_offset() / kPageBytes;
  }
  std::byte* bytes(std::uint64_t page) const {
    return reinterpret_cast<std::byte*>(address_ + (page * kPageBytes - file_offset_));
  }

 private:
  std::vector<ProtectedPart> parts_with(const ProtectedPart& added) const;
  Status protect_memory(std::size_t from, std::size_t to, int protection);
  void forget() noexcept;
  Status protect_parts(std::size_t from, std::size_t to);
  std::size_t clip(std::uint64_t size_bytes) const;  // to bytes of the window, whole pages
  bool is_mapped(std::size_t from, std::size_t to) const;
  Status unless_lost(std::size_t from, std::size_t to, const Status& failure) const;
  Status resize_accessible(std::size_t wanted);
  Status map_past_end(std::size_t from, std::size_t to, int fixed);
  Status map_anonymous(std::size_t from, std::size_t to);
  Status watch_growth(std::size_t from, std::size_t to);
  Status take_back(std::size_t from, std::size_t to, const Status& failure);
  Status watch_file(std::size_t from);
  Status watch_anew(std::size_t from);
  Status protect_or_leave(std::size_t from, std::size_t to, int protection);

  Medium& medium_;
  const std::unique_ptr<Tracker>& tracker_;
  char* address_ = nullptr;
  std::size_t length_ = 0;
  int protection_ = 0;
  std::vector<ProtectedPart> parts_;
  std::uint64_t file_offset_ = 0;
  std::size_t file_part_ = 0;   // bytes of the window that the base backs
  std::size_t accessible_ = 0;  // bytes of the window that can be touched
};

}  // namespace pawl
