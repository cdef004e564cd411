// Whether the program's memory can be loaded from, asked without loading: what a call of libc's is
// given may be no memory at all, which the kernel answers with EFAULT.
#pragma once

#include <cstddef>

namespace pawl {

// Async-signal-safe; a system call of 0.1 us for each page.
bool is_readable(const void* address, std::size_t length);

// Up to the byte that ends it, or as far as a path may go.
bool is_readable_text(const char* text);

// The same of an array, which may be too long for any memory.
template <class Element>
bool are_readable(const Element* elements, std::size_t count) {
  std::size_t bytes = 0;
  return !__builtin_mul_overflow(count, sizeof(Element), &bytes) && is_readable(elements, bytes);
}

}  // namespace pawl
