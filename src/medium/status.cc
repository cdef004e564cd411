#include "medium/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace pawl {

Status Status::failure(int error_number, std::string text) noexcept {
  Status status;
  status.error_number_ = error_number;
  status.text_.reset(new (std::nothrow) std::string(std::move(text)));
  return status;
}

Status Status::from_errno(int error_number, const std::string& what) {
  return failure(error_number, what + ": " + std::strerror(error_number));
}

Status Status::no_memory(const char* text) noexcept {
  try {
    return failure(ENOMEM, text);
  } catch (const std::bad_alloc&) {
    return failure(ENOMEM, {});
  }
}

const std::string& Status::text() const noexcept {
  // Short enough to take no memory.
  static const std::string success;
  static const std::string no_memory("out of memory");
  if (text_ != nullptr) return *text_;
  return ok() ? success : no_memory;
}

void invariant_broken(const char* condition, const char* file, int line) {
  std::fprintf(stderr,
               "pawl: internal error: %s does not hold (%s:%d). The process stops here so that no "
               "file is harmed; the next open recovers the last durable state.\n",
               condition, file, line);
  std::abort();
}

}  // namespace pawl
