#include "msync/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "common/failure.h"

namespace pawl::bench {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr mode_t kMode = 0600;

}  // namespace

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File open_file(const std::string& path, int flags) {
  File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, kMode));
  if (file.descriptor() < 0) fail_with_errno("cannot open " + path);
  return file;
}

File make_sparse_file(const std::string& path, std::uint64_t bytes, int flags) {
  File file = open_file(path, O_CREAT | O_EXCL | flags);
  if (::ftruncate(file.descriptor(), static_cast<off_t>(bytes)) != 0)
    fail_with_errno("cannot set the size of " + path);
  return file;
}

File make_written_file(const std::string& path, std::uint64_t bytes) {
  File file = make_sparse_file(path, bytes);
  std::vector<std::uint64_t> piece(kPieceBytes / sizeof(std::uint64_t));
  std::mt19937_64 random(1);
  std::generate(piece.begin(), piece.end(), random);
  for (std::uint64_t offset = 0; offset < bytes;) {
    piece[0] = offset;
    const std::size_t length = std::min<std::uint64_t>(kPieceBytes, bytes - offset);
    const ssize_t done =
        ::pwrite(file.descriptor(), piece.data(), length, static_cast<off_t>(offset));
    if (done <= 0) fail_with_errno("cannot write " + path);
    offset += static_cast<std::uint64_t>(done);
  }
  if (::fdatasync(file.descriptor()) != 0) fail_with_errno("cannot flush " + path);
  return file;
}

}  // namespace pawl::bench
