// Errors as values: an errno, and a sentence that says what happened and what to do about it.
#pragma once

#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace pawl {

// Small, for it is returned everywhere: a success is an integer and a null pointer.
class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  // Throw std::bad_alloc.
  Status(const Status& other)
      : error_number_(other.error_number_),
        text_(other.text_ == nullptr ? nullptr : std::make_unique<std::string>(*other.text_)) {}
  Status& operator=(const Status& other) { return *this = Status(other); }
  ~Status() = default;

  static Status failure(int error_number, std::string text) noexcept;

  // ENOMEM, where memory may be so short that the text has to be left out.
  static Status no_memory(const char* text) noexcept;

  // "WHAT: strerror(error_number)".
  static Status from_errno(int error_number, const std::string& what);

  bool ok() const { return error_number_ == 0; }
  int error_number() const { return error_number_; }
  // Empty after success; "out of memory" where there was none for the text.
  const std::string& text() const noexcept;

 private:
  int error_number_ = 0;
  std::unique_ptr<std::string> text_;
};

// A value, or the failure that kept it from being made.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : outcome_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status failure) : outcome_(std::move(failure)) {  // NOLINT: implicit by design
    assert(!std::get<Status>(outcome_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(outcome_); }
  T& value() { return std::get<T>(outcome_); }
  const T& value() const { return std::get<T>(outcome_); }
  Status status() const { return ok() ? Status{} : std::get<Status>(outcome_); }

 private:
  std::variant<T, Status> outcome_;
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
