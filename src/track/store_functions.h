// What compiled programs call instead of functions of the C library that write through pointers:
// pawl_stored_NAME() calls NAME() and then marks what it wrote, for the store tracker.  Programs
// that no compiler marked call the C library's own, and pay nothing.
//
// Include this first: fortified inlines and 64-bit redirections in libc's headers would rename what
// is called here.
#pragma once

#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <cwchar>

#include "pawl/store.h"
#include "track/store_marks.h"

// Defines pawl_stored_NAME: calls, marks as the last argument says, and returns the `result`.
#define PAWL_STORED(type, name, parameters, arguments, ...) \
  extern "C" PAWL_PUBLIC type pawl_stored_##name parameters { \
    const auto result = name arguments; \
    __VA_ARGS__; \
    return result; \
  } \
  static_assert(true)
#define PAWL_STORED_NOTHING(name, parameters, arguments, ...) \
  extern "C" PAWL_PUBLIC void pawl_stored_##name parameters { \
    name arguments; \
    __VA_ARGS__; \
  } \
  static_assert(true)
// For objects that other threads may see at once, and commit: marked before and behind.
#define PAWL_STORED_AROUND(type, name, parameters, arguments, ...) \
  extern "C" PAWL_PUBLIC type pawl_stored_##name parameters { \
    __VA_ARGS__; \
    const auto result = name arguments; \
    __VA_ARGS__; \
    return result; \
  } \
  static_assert(true)

namespace pawl::stored {

// Where it is not to be known how much a call that failed has written, into a buffer whose size is
// not known, either.
inline constexpr std::size_t kUnknownBytes = std::size_t{64} << 10;

inline std::size_t written_at_most(std::size_t size) {
  return size == ~std::size_t{0} ? kUnknownBytes : size;
}

inline std::size_t product(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? ~std::size_t{0} : bytes;
}

inline void mark_bytes(const void* at, std::size_t count) {
  if (count != 0 && in_store_region(at)) pawl_stored(at, count);
}
// As many as a call says, which are none if it failed.
template <class Count>
void mark_count(const void* at, Count count) {
  if (count > 0) mark_bytes(at, static_cast<std::size_t>(count));
}
// Null is in no mapping.
template <class Object>
void mark(const Object* object) {
  mark_bytes(object, sizeof *object);
}
template <class Object>
void mark_array(const Object* first, std::size_t count) {
  mark_bytes(first, product(count, sizeof *first));
}
// With the zero behind it.
inline void mark_string(const char* text) {
  if (in_store_region(text)) pawl_stored(text, std::strlen(text) + 1);
}
inline void mark_string(const wchar_t* text) {
  if (in_store_region(text)) pawl_stored(text, (std::wcslen(text) + 1) * sizeof *text);
}
// Of a buffer, when the text in it need not have an end.
inline void mark_string(const char* text, std::size_t size) {
  if (in_store_region(text)) pawl_stored(text, std::min(::strnlen(text, size) + 1, size));
}
// What came may be more than there is room for: with MSG_TRUNC a call says how long a message was.
inline void mark_vectors(const iovec* vectors, std::size_t count, std::size_t bytes) {
  for (; bytes > 0 && count > 0; ++vectors, --count) {
    const std::size_t here = std::min(vectors->iov_len, bytes);
    mark_bytes(vectors->iov_base, here);
    bytes -= here;
  }
}

}  // namespace pawl::stored
