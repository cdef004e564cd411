// The content of a file, held by pages that copies share: a test may keep many states of one file.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "medium/medium.h"

namespace pawl::test {

class Content {
 public:
  std::uint64_t size() const { return size_; }
  // What is gained reads as zeros.
  void resize(std::uint64_t size_bytes);
  // Grows the file when it ends behind the end.
  void write(std::uint64_t offset, std::span<const std::byte> from);
  // Only within the file: the size stays.
  void zero(std::uint64_t offset, std::uint64_t length);
  // Takes as much of a page as both files have.
  void copy_page(const Content& from, std::uint64_t number);
  // Bytes past the end read as zeros.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

  // Where the two differ first; the smaller size when that is all.
  std::optional<std::uint64_t> first_difference(const Content& other) const;
  // The same for two that do not differ, whatever holes they have; against chance, not malice.
  std::uint64_t checksum() const;

  // As a file; all throw std::runtime_error when they cannot.
  void save_as(const std::string& path) const;
  static Content of(MediumFile& file);
  static Content load_from(const std::string& path);

 private:
  struct Page {
    Page() = default;
    Page(const Page& other) : bytes(other.bytes) {}
    Page& operator=(const Page&) = delete;

    std::array<std::byte, kPageBytes> bytes{};
    mutable std::atomic<std::uint64_t> checksum{0};  // 0: not known
  };
  struct Numbered {
    std::uint64_t number;
    std::shared_ptr<Page> page;
  };
  using Pages = std::vector<Numbered>;

  Page& writable(std::uint64_t number);
  Pages::iterator lower_bound(std::uint64_t number);
  Pages::const_iterator lower_bound(std::uint64_t number) const;

  // In ascending order.  Pages that are not here are zeros, and so is all of a page behind the end
  // of the file.
  Pages pages_;
  std::uint64_t size_ = 0;
};

}  // namespace pawl::test
