#include "medium/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace pawl {

Status Status::from_errno(int error_number, const std::string& what) {
  return failure(error_number, what + ": " + std::strerror(error_number));
}

Status Status::no_memory(const char* text) noexcept {
  try {
    return failure(ENOMEM, text);
  } catch (const std::bad_alloc&) {
    return failure(ENOMEM, "out of memory");  // so short that it takes none
  }
}

void invariant_broken(const char* condition, const char* file, int line) {
  std::fprintf(stderr,
               "pawl: internal error: %s does not hold (%s:%d). The process stops here so that no "
               "file is harmed; the next open recovers the last durable state.\n",
               condition, file, line);
  std::abort();
}

}  // namespace pawl
