#include "medium/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace pawl {

namespace {

constexpr std::uintptr_t without_text(int error_number) {
  return static_cast<std::uintptr_t>(error_number) * 2 + 1;
}

}  // namespace

Status Status::failure(int error_number, std::string text) noexcept {
  PAWL_ASSERT(error_number > 0);
  const auto* const made = new (std::nothrow) Failure{error_number, std::move(text)};
  Status status;
  status.failure_ =
      made == nullptr ? without_text(error_number) : reinterpret_cast<std::uintptr_t>(made);
  return status;
}

bool Status::has_text() const { return !ok() && failure_ % 2 == 0; }

const Status::Failure& Status::with_text() const {
  return *reinterpret_cast<const Failure*>(failure_);  // NOLINT: an address
}

std::uintptr_t Status::copy_of_failure() const {
  return has_text() ? reinterpret_cast<std::uintptr_t>(new Failure(with_text())) : failure_;
}

int Status::error_number_of_failure() const {
  return has_text() ? with_text().error_number : static_cast<int>(failure_ / 2);
}

void Status::forget() noexcept {
  if (has_text()) delete &with_text();
}

std::string FailedCall::text() const { return what + ": " + std::strerror(error_number); }

Status::Status(const FailedCall& call) : Status(failure(call.error_number, call.text())) {}

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
  if (has_text()) return with_text().text;
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
