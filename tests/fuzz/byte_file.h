// A file of bytes in memory that insists on what direct I/O insists on, as a journal's file may.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "fuzz/require.h"
#include "medium/medium.h"

namespace pawl::fuzz {

class ByteFile final : public MediumFile {
 public:
  // `bytes` must outlive the file.  It refuses to hold more than bytes_max.
  explicit ByteFile(std::vector<std::byte>& bytes, std::uint64_t bytes_max = ~std::uint64_t{0})
      : bytes_(bytes), bytes_max_(bytes_max) {}

  std::uint64_t reads() const { return reads_; }
  std::uint64_t changes() const { return changes_; }
  std::function<void()> before_change;
  std::uint64_t write_unit = kPageBytes;  // of the medium whose file this is

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    check_alignment(offset, into.size(), into.data(), kPageBytes);
    reads_ += 1;
    std::fill(into.begin(), into.end(), std::byte{0});
    if (offset < bytes_.size()) {
      std::memcpy(into.data(), bytes_.data() + offset,
                  std::min<std::uint64_t>(into.size(), bytes_.size() - offset));
    }
    return {};
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    check_alignment(offset, from.size(), from.data(), write_unit);
    if (offset + from.size() > bytes_.size()) PAWL_TRY(resize(offset + from.size()));
    about_to_change();
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    return {};
  }
  Status flush() override { return {}; }
  Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }
  Status resize(std::uint64_t size_bytes) override {
    PAWL_TRY(reserve(0, size_bytes));
    about_to_change();
    bytes_.resize(size_bytes);
    return {};
  }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    if (offset <= bytes_max_ && length <= bytes_max_ - offset) return {};
    return Status::failure(ENOSPC, "no space left in memory");
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override { return zero(offset, length); }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    about_to_change();
    for (std::uint64_t at = offset; at < std::min<std::uint64_t>(offset + length, bytes_.size());
         ++at)
      bytes_[at] = std::byte{0};
    return {};
  }
  Result<std::uint64_t> allocated_prefix_bytes() override { return std::uint64_t{0}; }

 private:
  static void check_alignment(std::uint64_t offset, std::size_t length, const void* memory,
                              std::uint64_t unit) {
    require(offset % unit == 0 && length % unit == 0 &&
                reinterpret_cast<std::uintptr_t>(memory) % unit == 0,
            "journal I/O is aligned to whole blocks");
  }
  void about_to_change() {
    changes_ += 1;
    if (before_change) before_change();
  }

  std::vector<std::byte>& bytes_;
  const std::uint64_t bytes_max_;
  std::uint64_t reads_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace pawl::fuzz
