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

// Any failure but want of memory.  code() is the errno value, what() the sentence of
// pawl_last_error() and the number's own text.
class error : public std::system_error {
 public:
  error(int error_number, const std::string& text)
      : std::system_error(error_number, std::generic_category(), text) {}
};

// The heap is full up to its maximum.  No pawl::error, since containers and those who use them
// expect std::bad_alloc, and a class that is both could not be caught as std::exception.
class out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(const char* text) noexcept {
    std::strncpy(text_, text, sizeof(text_) - 1);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[256] = {};  // inside, so that a copy cannot fail
};

namespace detail {

// Throws what the last failed call of this thread left.
[[noreturn]] inline void throw_last_error() {
  const int error_number = errno;
  if (error_number == ENOMEM) throw out_of_memory(pawl_last_error());
  throw error(error_number, pawl_last_error());
}

}  // namespace detail
}  // namespace pawl

#endif
