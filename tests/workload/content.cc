#include "workload/content.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "medium/descriptor.h"

namespace pawl::test {

Content::Page& Content::writable(std::uint64_t number) {
  std::shared_ptr<Page>& page = pages_[number];
  if (page == nullptr) {
    page = std::make_shared<Page>();
    page->fill(std::byte{0});
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  return *page;
}

void Content::resize(std::uint64_t size_bytes) {
  if (size_bytes < size_) {
    zero(size_bytes, size_ - size_bytes);
  }
  size_ = size_bytes;
}

void Content::write(std::uint64_t offset, std::span<const std::byte> from) {
  size_ = std::max<std::uint64_t>(size_, from.empty() ? 0 : offset + from.size());
  while (!from.empty()) {
    const std::size_t in_page = offset % kPageBytes;
    const std::size_t piece = std::min(from.size(), kPageBytes - in_page);
    std::memcpy(writable(offset / kPageBytes).data() + in_page, from.data(), piece);
    from = from.subspan(piece);
    offset += piece;
  }
}

void Content::zero(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = std::min(offset + length, size_);
  if (offset >= end) return;
  // Looks only at the pages that exist: the range may be large and empty.
  auto page = pages_.lower_bound(offset / kPageBytes);
  while (page != pages_.end() && page->first * kPageBytes < end) {
    const std::uint64_t start = page->first * kPageBytes;
    const std::uint64_t low = std::max(offset, start) - start;
    const std::uint64_t high = std::min(end, start + kPageBytes) - start;
    if (low == 0 && (high == kPageBytes || end == size_)) {
      page = pages_.erase(page);
      continue;
    }
    std::memset(writable(page->first).data() + low, 0, high - low);
    ++page;
  }
}

void Content::copy_page(const Content& from, std::uint64_t number) {
  const std::uint64_t start = number * kPageBytes;
  const std::uint64_t end = std::min({start + kPageBytes, size_, from.size_});
  if (start >= end) return;
  Page bytes;
  from.read(start, bytes);
  write(start, std::span(bytes).first(end - start));
}

void Content::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const std::size_t in_page = offset % kPageBytes;
    const std::size_t piece = std::min(into.size(), kPageBytes - in_page);
    const auto page = pages_.find(offset / kPageBytes);
    if (page == pages_.end())
      std::memset(into.data(), 0, piece);
    else
      std::memcpy(into.data(), page->second->data() + in_page, piece);
    into = into.subspan(piece);
    offset += piece;
  }
}

std::optional<std::uint64_t> Content::first_difference(const Content& other) const {
  static const Page kZeros{};
  auto own = pages_.begin();
  auto its = other.pages_.begin();
  while (own != pages_.end() || its != other.pages_.end()) {
    const bool has_own =
        own != pages_.end() && (its == other.pages_.end() || own->first <= its->first);
    const bool has_its =
        its != other.pages_.end() && (own == pages_.end() || its->first <= own->first);
    const std::uint64_t number = has_own ? own->first : its->first;
    const Page& left = has_own ? *own->second : kZeros;
    const Page& right = has_its ? *its->second : kZeros;
    if (&left != &right) {
      const auto differs = std::mismatch(left.begin(), left.end(), right.begin()).first;
      if (differs != left.end())
        return number * kPageBytes + static_cast<std::uint64_t>(differs - left.begin());
    }
    if (has_own) ++own;
    if (has_its) ++its;
  }
  if (size_ != other.size_) return std::min(size_, other.size_);
  return std::nullopt;
}

std::uint64_t Content::checksum() const {
  constexpr std::uint64_t kOddFactor = 0x9e3779b97f4a7c15;
  std::uint64_t sum = size_;
  const auto mix = [&](std::uint64_t word) {
    sum = (sum ^ word) * kOddFactor;
    sum ^= sum >> 29;
  };
  for (const auto& [number, page] : pages_) {
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (std::all_of(page->begin(), page->end(), is_zero)) continue;
    mix(number);
    for (std::size_t at = 0; at < kPageBytes; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, page->data() + at, sizeof word);
      mix(word);
    }
  }
  return sum;
}

namespace {

void insist(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}

}  // namespace

void Content::save_as(const std::string& path) const {
  DescriptorFile file(Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)), path);
  Status saved = file.resize(size_);
  for (auto page = pages_.begin(); saved.ok() && page != pages_.end(); ++page) {
    const std::uint64_t start = page->first * kPageBytes;
    saved = file.write(start, std::span(*page->second).first(std::min(kPageBytes, size_ - start)));
  }
  insist(saved);
}

Content Content::load_from(const std::string& path) {
  DescriptorFile file(Descriptor(::open(path.c_str(), O_RDONLY)), path);
  Content content;
  auto size = file.size();
  insist(size.status());
  std::vector<std::byte> bytes(size.value());
  insist(file.read(0, bytes));
  content.write(0, bytes);
  return content;
}

}  // namespace pawl::test
