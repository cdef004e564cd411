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

namespace {

constexpr std::uint64_t kOddFactor = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kChecksumOfZeros = 1;  // of a page that might as well not be there

void insist(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}

std::uint64_t mix(std::uint64_t sum, std::uint64_t word) {
  sum = (sum ^ word) * kOddFactor;
  return sum ^ (sum >> 29);
}

}  // namespace

Content::Pages::iterator Content::lower_bound(std::uint64_t number) {
  return std::lower_bound(
      pages_.begin(), pages_.end(), number,
      [](const Numbered& page, std::uint64_t wanted) { return page.number < wanted; });
}

Content::Pages::const_iterator Content::lower_bound(std::uint64_t number) const {
  return std::lower_bound(
      pages_.begin(), pages_.end(), number,
      [](const Numbered& page, std::uint64_t wanted) { return page.number < wanted; });
}

Content::Page& Content::writable(std::uint64_t number) {
  auto found = lower_bound(number);
  if (found == pages_.end() || found->number != number) {
    found = pages_.insert(found, {number, std::make_shared<Page>()});
  } else if (found->page.use_count() > 1) {
    found->page = std::make_shared<Page>(*found->page);
  } else {
    found->page->checksum.store(0, std::memory_order_relaxed);
  }
  return *found->page;
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
    std::memcpy(writable(offset / kPageBytes).bytes.data() + in_page, from.data(), piece);
    from = from.subspan(piece);
    offset += piece;
  }
}

void Content::zero(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = std::min(offset + length, size_);
  if (offset >= end) return;
  // Looks only at the pages that exist: the range may be large and empty.
  auto page = lower_bound(offset / kPageBytes);
  auto kept = page;
  for (; page != pages_.end() && page->number * kPageBytes < end; ++page) {
    const std::uint64_t start = page->number * kPageBytes;
    const std::uint64_t low = std::max(offset, start) - start;
    const std::uint64_t high = std::min(end, start + kPageBytes) - start;
    if (low == 0 && (high == kPageBytes || end == size_)) continue;
    std::memset(writable(page->number).bytes.data() + low, 0, high - low);
    if (kept != page) *kept = std::move(*page);
    ++kept;
  }
  pages_.erase(kept, page);
}

void Content::copy_page(const Content& from, std::uint64_t number) {
  const std::uint64_t start = number * kPageBytes;
  const std::uint64_t end = std::min({start + kPageBytes, size_, from.size_});
  if (start >= end) return;
  std::array<std::byte, kPageBytes> bytes;
  from.read(start, bytes);
  write(start, std::span(bytes).first(end - start));
}

void Content::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const std::size_t in_page = offset % kPageBytes;
    const std::size_t piece = std::min(into.size(), kPageBytes - in_page);
    const auto found = lower_bound(offset / kPageBytes);
    if (found == pages_.end() || found->number != offset / kPageBytes)
      std::memset(into.data(), 0, piece);
    else
      std::memcpy(into.data(), found->page->bytes.data() + in_page, piece);
    into = into.subspan(piece);
    offset += piece;
  }
}

std::optional<std::uint64_t> Content::first_difference(const Content& other) const {
  static const Page kZeros;
  auto own = pages_.begin();
  auto its = other.pages_.begin();
  while (own != pages_.end() || its != other.pages_.end()) {
    const bool has_own =
        own != pages_.end() && (its == other.pages_.end() || own->number <= its->number);
    const bool has_its =
        its != other.pages_.end() && (own == pages_.end() || its->number <= own->number);
    const std::uint64_t number = has_own ? own->number : its->number;
    const Page& left = has_own ? *own->page : kZeros;
    const Page& right = has_its ? *its->page : kZeros;
    if (&left != &right) {
      const auto differs =
          std::mismatch(left.bytes.begin(), left.bytes.end(), right.bytes.begin()).first;
      if (differs != left.bytes.end())
        return number * kPageBytes + static_cast<std::uint64_t>(differs - left.bytes.begin());
    }
    if (has_own) ++own;
    if (has_its) ++its;
  }
  if (size_ != other.size_) return std::min(size_, other.size_);
  return std::nullopt;
}

// Each page's is kept with it, so that copies which share pages share that work too.
std::uint64_t Content::checksum() const {
  std::uint64_t sum = size_;
  for (const auto& [number, page] : pages_) {
    std::uint64_t of_page = page->checksum.load(std::memory_order_relaxed);
    if (of_page == 0) {
      of_page = kChecksumOfZeros;
      bool zeros = true;
      for (std::size_t at = 0; at < kPageBytes; at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, page->bytes.data() + at, sizeof word);
        of_page = mix(of_page, word);
        zeros = zeros && word == 0;
      }
      if (zeros)
        of_page = kChecksumOfZeros;
      else if (of_page <= kChecksumOfZeros)
        of_page = ~of_page;
      page->checksum.store(of_page, std::memory_order_relaxed);
    }
    if (of_page != kChecksumOfZeros) sum = mix(mix(sum, number), of_page);
  }
  return sum;
}

void Content::save_as(const std::string& path) const {
  DescriptorFile file(Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)), path);
  Status saved = file.resize(size_);
  for (auto page = pages_.begin(); saved.ok() && page != pages_.end(); ++page) {
    const std::uint64_t start = page->number * kPageBytes;
    saved =
        file.write(start, std::span(page->page->bytes).first(std::min(kPageBytes, size_ - start)));
  }
  insist(saved);
}

Content Content::of(MediumFile& file) {
  Content content;
  auto size = file.size();
  insist(size.status());
  std::vector<std::byte> bytes(size.value());
  insist(file.read(0, bytes));
  content.write(0, bytes);
  return content;
}

Content Content::load_from(const std::string& path) {
  DescriptorFile file(Descriptor(::open(path.c_str(), O_RDONLY)), path);
  return of(file);
}

}  // namespace pawl::test
