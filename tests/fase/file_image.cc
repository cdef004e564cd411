#include "fase/file_image.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstring>

#include "fase/blocks_format.h"
#include "fase/format.h"
#include "medium/descriptor.h"
#include "support/zeroed_data.h"

namespace pawl::test {

FileImage FileImage::read(const std::string& path) {
  FileImage image;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  EXPECT_EQ(::fstat(file.get(), &status), 0);
  image.size_bytes_ = static_cast<std::uint64_t>(status.st_size);
  std::vector<std::byte> page(kPageBytes);
  const std::vector<std::byte> zeros(kPageBytes);
  // Holes are skipped; so are the zeros of what only has space.
  for (off_t at = 0; (at = ::lseek(file.get(), at, SEEK_DATA)) >= 0;) {
    const off_t end = ::lseek(file.get(), at, SEEK_HOLE);
    for (; at < end; at += kPageBytes) {
      const ssize_t count = ::pread(file.get(), page.data(), page.size(), at);
      EXPECT_EQ(count, static_cast<ssize_t>(page.size()));
      if (std::memcmp(page.data(), zeros.data(), page.size()) != 0)
        image.pages_[static_cast<std::uint64_t>(at)] = page;
    }
  }
  fase::Identity identity{};
  std::memcpy(&identity, image.pages_[0].data(), sizeof identity);
  image.address_ = identity.address;
  return image;
}

void FileImage::write(const std::string& path) const {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const auto size = static_cast<off_t>(size_bytes_);
  EXPECT_EQ(::ftruncate(file.get(), size), 0);
  const auto punch = [&](off_t from, off_t to) {
    EXPECT_EQ(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from),
              0);
  };
  punch(fase::kSchemeLogsOffset, fase::kHeapOffset);
  fase::AreaHeader heap{};
  if (const auto page = pages_.find(fase::kHeapOffset); page != pages_.end())
    std::memcpy(&heap, page->second.data(), sizeof heap);
  const auto end = static_cast<off_t>(fase::kHeapOffset + heap.chunks_end * fase::kChunkBytes);
  if (end < size) punch(end, size);
  const auto put = [&](off_t at, const std::vector<std::byte>& page) {
    EXPECT_EQ(::pwrite(file.get(), page.data(), page.size(), at),
              static_cast<ssize_t>(page.size()));
  };
  EXPECT_TRUE(zero_data(file.get()));
  for (const auto& [offset, page] : pages_) put(static_cast<off_t>(offset), page);
}

std::byte FileImage::byte_at(std::uint64_t address) const {
  const std::uint64_t offset = address - address_;
  const auto page = pages_.find(round_down(offset, kPageBytes));
  return page == pages_.end() ? std::byte{} : page->second[offset % kPageBytes];
}

}  // namespace pawl::test
