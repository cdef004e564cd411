#include "tracing/process_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

namespace pawl::tracing {

namespace {
constexpr std::size_t kPieceBytes = 256;  // divides a page: a piece is readable or it is not
}  // namespace

bool read_memory(pid_t thread, std::uint64_t address, void* into, std::size_t length) {
  iovec ours{into, length};
  iovec theirs{reinterpret_cast<void*>(address), length};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(thread, &ours, 1, &theirs, 1, 0) == static_cast<ssize_t>(length);
}

std::optional<std::string> read_path(pid_t thread, std::uint64_t address) {
  std::string path;
  while (path.size() < PATH_MAX) {
    std::array<char, kPieceBytes> piece{};
    const std::size_t length = kPieceBytes - address % kPieceBytes;
    if (!read_memory(thread, address, piece.data(), length)) return std::nullopt;
    const auto* const end = static_cast<const char*>(std::memchr(piece.data(), 0, length));
    path.append(piece.data(),
                end != nullptr ? static_cast<std::size_t>(end - piece.data()) : length);
    if (end != nullptr) return path;
    address += length;
  }
  return std::nullopt;
}

}  // namespace pawl::tracing
