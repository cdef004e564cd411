// What the C++ face of the persistent heap throws.  Included by pawl/heap.hpp.
#ifndef PAWL_ERROR_HPP
#define PAWL_ERROR_HPP

#include <pawl/pawl.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

namespace pawl {

// Any failure but want of memory.  code() is the errno value, pawl_code() the condition (an enum
// pawl_error, or what a later library has), and what() the sentence of pawl_last_error() and the
// number's own text.
class error : public std::system_error {
 public:
  error(int error_number, int condition, const std::string& text)
      : std::system_error(error_number, std::generic_category(), text), condition_(condition) {}
  int pawl_code() const noexcept { return condition_; }

 private:
  int condition_;
};

// The heap is full up to its maximum.  No pawl::error, since containers and those who use them
// expect std::bad_alloc, and a class that is both could not be caught as std::exception.
class out_of_memory : public std::bad_alloc {
 public:
  out_of_memory(int condition, const char* text) noexcept : condition_(condition) {
    std::strncpy(text_, text, sizeof(text_) - 1);
  }
  const char* what() const noexcept override { return text_; }
  int pawl_code() const noexcept { return condition_; }

 private:
  int condition_;
  char text_[256] = {};  // inside, so that a copy cannot fail
};

namespace detail {

// Throws what the last failed call of this thread left.
[[noreturn]] inline void throw_last_error() {
  const int error_number = errno;
  const int condition = pawl_last_error_code();
  if (error_number == ENOMEM) throw out_of_memory(condition, pawl_last_error());
  throw error(error_number, condition, pawl_last_error());
}

}  // namespace detail
}  // namespace pawl

#endif
