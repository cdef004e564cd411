#include "medium/random_bytes.h"

#include <sys/random.h>
#include <cerrno>

namespace pawl {

Status draw_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t drawn = ::getrandom(bytes.data(), bytes.size(), 0);
    if (drawn < 0) return FailedCall{errno, "cannot draw a random number (getrandom)"};
    bytes = bytes.subspan(static_cast<std::size_t>(drawn));
  }
  return {};
}

}  // namespace pawl
