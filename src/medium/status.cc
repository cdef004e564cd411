#include "medium/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace pawl {

namespace {

constexpr int kErrorNumberBits = 16;

constexpr std::uintptr_t without_text(int error_number, pawl_error code) {
  const auto both = static_cast<std::uintptr_t>(code) << kErrorNumberBits |
                    static_cast<std::uintptr_t>(error_number);
  return both * 2 + 1;
}

pawl_error code_of_call(int error_number) {
  if (is_want_of_space(error_number)) return PAWL_ERROR_NO_SPACE;
  switch (error_number) {
    case EACCES:
    case EPERM:
      return PAWL_ERROR_NO_PERMISSION;
    case EFBIG:
      return PAWL_ERROR_TOO_LARGE;
    case EIO:
      return PAWL_ERROR_IO;
    case ENOENT:
      return PAWL_ERROR_NOT_FOUND;
    case ENOMEM:
      return PAWL_ERROR_NO_MEMORY;
    case EROFS:
      return PAWL_ERROR_READ_ONLY_FILE_SYSTEM;
    default:
      return PAWL_ERROR_SYSTEM;
  }
}

}  // namespace

Status Status::failure(int error_number, pawl_error code, std::string text) noexcept {
  PAWL_ASSERT(error_number > 0 && code != PAWL_ERROR_NONE);
  const auto* const made = new (std::nothrow) Failure{error_number, code, std::move(text)};
  Status status;
  status.failure_ =
      made == nullptr ? without_text(error_number, code) : reinterpret_cast<std::uintptr_t>(made);
  return status;
}

// From the kernel EINVAL may mean anything; from Pawl it is an argument.
Status Status::failure(int error_number, std::string text) noexcept {
  return failure(error_number,
                 error_number == EINVAL ? PAWL_ERROR_INVALID_ARGUMENT : code_of_call(error_number),
                 std::move(text));
}

Status Status::with_text(std::string text) const noexcept {
  return ok() ? Status{} : failure(error_number(), code(), std::move(text));
}

Status Status::prefixed(const std::string& prefix) const { return with_text(prefix + text()); }

bool Status::advises_to_free_space() const {
  return text().find("ree some space") != std::string::npos;
}

bool Status::has_text() const { return !ok() && failure_ % 2 == 0; }

const Status::Failure& Status::kept() const {
  return *reinterpret_cast<const Failure*>(failure_);  // NOLINT: an address
}

std::uintptr_t Status::copy_of_failure() const {
  return has_text() ? reinterpret_cast<std::uintptr_t>(new Failure(kept())) : failure_;
}

int Status::error_number_of_failure() const {
  if (has_text()) return kept().error_number;
  return static_cast<int>(failure_ / 2 % (std::uintptr_t{1} << kErrorNumberBits));
}

pawl_error Status::code_of_failure() const {
  return has_text() ? kept().code : static_cast<pawl_error>(failure_ / 2 >> kErrorNumberBits);
}

void Status::forget() noexcept {
  if (has_text()) delete &kept();
}

std::string FailedCall::text() const { return what + ": " + std::strerror(error_number); }

Status::Status(const FailedCall& call)
    : Status(failure(call.error_number,
                     call.code != PAWL_ERROR_NONE ? call.code : code_of_call(call.error_number),
                     call.text())) {}

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
  if (has_text()) return kept().text;
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
