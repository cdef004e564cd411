// Errors as values: an errno, and a sentence that says what happened and what to do about it.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "pawl/error_codes.h"

namespace pawl {

// On the disk, or within the user's quota: with space again the same call may succeed.
constexpr bool is_want_of_space(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT;
}

// A system call that failed; as a status, "WHAT: strerror(error_number)".  An aggregate, whose
// parts are evaluated in order: errno is read before the text is put together, which may change it.
// Of a function's arguments the compiler chooses the order.
struct FailedCall {
  int error_number;
  std::string what;
  pawl_error code = PAWL_ERROR_NONE;  // of its own; else it follows from the error number

  std::string text() const;
};

// One word, for it is returned everywhere: a success is a zero, and one test tells both that it is
// one and that there is nothing to free.
class [[nodiscard]] Status {
 public:
  Status() = default;              // success
  Status(const FailedCall& call);  // NOLINT: implicit by design
  Status(Status&& other) noexcept : failure_(std::exchange(other.failure_, kSuccess)) {}
  // Throws std::bad_alloc.
  Status(const Status& other) : failure_(other.ok() ? kSuccess : other.copy_of_failure()) {}
  Status& operator=(Status other) noexcept {
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~Status() {
    if (!ok()) forget();
  }

  static Status failure(int error_number, pawl_error code, std::string text) noexcept;
  // With the code that the error number stands for.
  static Status failure(int error_number, std::string text) noexcept;

  // ENOMEM, where memory may be so short that the text has to be left out.
  static Status no_memory(const char* text) noexcept;

  bool ok() const { return failure_ == kSuccess; }
  int error_number() const { return ok() ? 0 : error_number_of_failure(); }
  pawl_error code() const { return ok() ? PAWL_ERROR_NONE : code_of_failure(); }
  // Empty after success; "out of memory" where there was none for the text.
  const std::string& text() const noexcept;
  // The same failure, told in other words, or with some before its own.
  Status with_text(std::string text) const noexcept;
  Status prefixed(const std::string& prefix) const;
  // What to do is in the text already: who adds to it says it no second time.
  bool advises_to_free_space() const;

 private:
  struct Failure {
    int error_number;
    pawl_error code;
    std::string text;
  };
  static constexpr std::uintptr_t kSuccess = 0;

  bool has_text() const;
  const Failure& kept() const;
  std::uintptr_t copy_of_failure() const;
  int error_number_of_failure() const;
  pawl_error code_of_failure() const;
  void forget() noexcept;

  // The address of a Failure; or, where there was no memory for one, an odd number, which has the
  // code and the error number in it.
  std::uintptr_t failure_ = kSuccess;
};

// A value, or the failure that kept it from being made.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}            // NOLINT: implicit by design
  Result(const FailedCall& call) : failure_(call) {}       // NOLINT: implicit by design
  Result(Status failure) : failure_(std::move(failure)) {  // NOLINT: implicit by design
    assert(!failure_.ok());
  }

  bool ok() const { return failure_.ok(); }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  Status status() const { return failure_; }

 private:
  std::optional<T> value_;
  Status failure_;
};

// A broken invariant ends the process before it can harm the file: the journal still holds the last
// durable state, and the next open recovers it.
[[noreturn]] void invariant_broken(const char* condition, const char* file, int line);

}  // namespace pawl

#define PAWL_ASSERT(condition) \
  ((condition) ? (void)0 : ::pawl::invariant_broken(#condition, __FILE__, __LINE__))

#define PAWL_TRY(expression) \
  do { \
    if (auto status_ = (expression); !status_.ok()) return status_; \
  } while (false)
