// pawl_stored_*: <string.h>, <strings.h>, <libgen.h>, and what fortified programs call of them.
#include "track/store_functions.h"

#include <libgen.h>
#include <strings.h>

using pawl::stored::mark;
using pawl::stored::mark_bytes;
using pawl::stored::mark_count;
using pawl::stored::mark_string;

// What no header declares to us.
extern "C" {
void* __memcpy_chk(void*, const void*, size_t, size_t);
void* __memmove_chk(void*, const void*, size_t, size_t);
void* __mempcpy_chk(void*, const void*, size_t, size_t);
void* __memset_chk(void*, int, size_t, size_t);
void __explicit_bzero_chk(void*, size_t, size_t);
char* __strcpy_chk(char*, const char*, size_t);
char* __stpcpy_chk(char*, const char*, size_t);
char* __strncpy_chk(char*, const char*, size_t, size_t);
char* __stpncpy_chk(char*, const char*, size_t, size_t);
char* __strcat_chk(char*, const char*, size_t);
char* __strncat_chk(char*, const char*, size_t, size_t);
int __xpg_strerror_r(int, char*, size_t);
char* __strdup(const char*);
char* __strndup(const char*, size_t);
// Of C libraries from 2.38 on, and of libbsd.
__attribute__((weak)) size_t strlcpy(char*, const char*, size_t);
__attribute__((weak)) size_t strlcat(char*, const char*, size_t);
}

PAWL_STORED(void*, memcpy, (void* to, const void* from, size_t count), (to, from, count),
            mark_bytes(to, count));
PAWL_STORED(void*, __memcpy_chk, (void* to, const void* from, size_t count, size_t room),
            (to, from, count, room), mark_bytes(to, count));
PAWL_STORED(void*, memmove, (void* to, const void* from, size_t count), (to, from, count),
            mark_bytes(to, count));
PAWL_STORED(void*, __memmove_chk, (void* to, const void* from, size_t count, size_t room),
            (to, from, count, room), mark_bytes(to, count));
PAWL_STORED(void*, mempcpy, (void* to, const void* from, size_t count), (to, from, count),
            mark_bytes(to, count));
PAWL_STORED(void*, __mempcpy, (void* to, const void* from, size_t count), (to, from, count),
            mark_bytes(to, count));
PAWL_STORED(void*, __mempcpy_chk, (void* to, const void* from, size_t count, size_t room),
            (to, from, count, room), mark_bytes(to, count));
PAWL_STORED(void*, memset, (void* to, int value, size_t count), (to, value, count),
            mark_bytes(to, count));
PAWL_STORED(void*, __memset_chk, (void* to, int value, size_t count, size_t room),
            (to, value, count, room), mark_bytes(to, count));
PAWL_STORED(void*, memccpy, (void* to, const void* from, int last, size_t count),
            (to, from, last, count),
            mark_bytes(to, result == nullptr ? count
                                             : static_cast<size_t>(static_cast<char*>(result) -
                                                                   static_cast<char*>(to))));
PAWL_STORED(void*, memfrob, (void* to, size_t count), (to, count), mark_bytes(to, count));
// NOLINTBEGIN(bugprone-unsafe-functions): they are what programs call
PAWL_STORED_NOTHING(bzero, (void* to, size_t count), (to, count), mark_bytes(to, count));
PAWL_STORED_NOTHING(explicit_bzero, (void* to, size_t count), (to, count), mark_bytes(to, count));
PAWL_STORED_NOTHING(__explicit_bzero_chk, (void* to, size_t count, size_t room), (to, count, room),
                    mark_bytes(to, count));
PAWL_STORED_NOTHING(bcopy, (const void* from, void* to, size_t count), (from, to, count),
                    mark_bytes(to, count));
// NOLINTEND(bugprone-unsafe-functions)
PAWL_STORED_NOTHING(swab, (const void* from, void* to, ssize_t count), (from, to, count),
                    mark_count(to, count / 2 * 2));

PAWL_STORED(char*, strcpy, (char* to, const char* from), (to, from), mark_string(to));
PAWL_STORED(char*, __strcpy_chk, (char* to, const char* from, size_t room), (to, from, room),
            mark_string(to));
PAWL_STORED(char*, stpcpy, (char* to, const char* from), (to, from),
            mark_count(to, result + 1 - to));
PAWL_STORED(char*, __stpcpy, (char* to, const char* from), (to, from),
            mark_count(to, result + 1 - to));
PAWL_STORED(char*, __stpcpy_chk, (char* to, const char* from, size_t room), (to, from, room),
            mark_count(to, result + 1 - to));
// These fill up what is left with zeros.
PAWL_STORED(char*, strncpy, (char* to, const char* from, size_t count), (to, from, count),
            mark_bytes(to, count));
PAWL_STORED(char*, __strncpy_chk, (char* to, const char* from, size_t count, size_t room),
            (to, from, count, room), mark_bytes(to, count));
PAWL_STORED(char*, stpncpy, (char* to, const char* from, size_t count), (to, from, count),
            mark_bytes(to, count));
PAWL_STORED(char*, __stpncpy, (char* to, const char* from, size_t count), (to, from, count),
            mark_bytes(to, count));
PAWL_STORED(char*, __stpncpy_chk, (char* to, const char* from, size_t count, size_t room),
            (to, from, count, room), mark_bytes(to, count));

// What is appended begins at the zero that was there.
#define PAWL_STORED_BEHIND(type, name, parameters, arguments) \
  extern "C" PAWL_PUBLIC type pawl_stored_##name parameters { \
    char* const end = to + std::strlen(to); \
    type const result = name arguments; \
    mark_string(end); \
    return result; \
  } \
  static_assert(true)
PAWL_STORED_BEHIND(char*, strcat, (char* to, const char* from), (to, from));
PAWL_STORED_BEHIND(char*, __strcat_chk, (char* to, const char* from, size_t room),
                   (to, from, room));
PAWL_STORED_BEHIND(char*, strncat, (char* to, const char* from, size_t count), (to, from, count));
PAWL_STORED_BEHIND(char*, __strncat_chk, (char* to, const char* from, size_t count, size_t room),
                   (to, from, count, room));

namespace {

// Of a program that has its own, for itself only.
size_t copy_cut(char* to, const char* from, size_t size) {
  const size_t length = std::strlen(from);
  if (size == 0) return length;
  const size_t copied = std::min(length, size - 1);
  std::memcpy(to, from, copied);
  to[copied] = 0;
  return length;
}
size_t append_cut(char* to, const char* from, size_t size) {
  const size_t before = ::strnlen(to, size);
  return before + copy_cut(to + before, from, size - before);
}

}  // namespace

extern "C" PAWL_PUBLIC size_t pawl_stored_strlcpy(char* to, const char* from, size_t size) {
  const size_t result = (strlcpy != nullptr ? strlcpy : copy_cut)(to, from, size);
  mark_bytes(to, std::min(result + 1, size));
  return result;
}
extern "C" PAWL_PUBLIC size_t pawl_stored_strlcat(char* to, const char* from, size_t size) {
  const size_t before = ::strnlen(to, size);
  const size_t result = (strlcat != nullptr ? strlcat : append_cut)(to, from, size);
  if (before < size) mark_string(to + before);
  return result;
}

// Copies in memory that malloc() gave: of a mapping, where the program's own does so.
PAWL_STORED(char*, strdup, (const char* from), (from), mark_string(result));
PAWL_STORED(char*, __strdup, (const char* from), (from), mark_string(result));
PAWL_STORED(char*, strndup, (const char* from, size_t size), (from, size), mark_string(result));
PAWL_STORED(char*, __strndup, (const char* from, size_t size), (from, size), mark_string(result));

PAWL_STORED(size_t, strxfrm, (char* to, const char* from, size_t size), (to, from, size),
            mark_bytes(to, std::min(result + 1, size)));
PAWL_STORED(size_t, strxfrm_l, (char* to, const char* from, size_t size, locale_t locale),
            (to, from, size, locale), mark_bytes(to, std::min(result + 1, size)));
PAWL_STORED(char*, strerror_r, (int number, char* to, size_t size), (number, to, size),
            if (result == to) mark_string(to, size));
PAWL_STORED(int, __xpg_strerror_r, (int number, char* to, size_t size), (number, to, size),
            mark_string(to, size));
PAWL_STORED(char*, strfry, (char* text), (text), mark_string(text));

// A zero behind the token that was found.
namespace {

void mark_end_of_token(const char* token) {
  if (token != nullptr && pawl::in_store_region(token)) mark_bytes(token + std::strlen(token), 1);
}

}  // namespace

PAWL_STORED(char*, strtok, (char* text, const char* ends), (text, ends), mark_end_of_token(result));
PAWL_STORED(char*, strtok_r, (char* text, const char* ends, char** rest), (text, ends, rest),
            mark_end_of_token(result);
            mark(rest));
PAWL_STORED(char*, __strtok_r, (char* text, const char* ends, char** rest), (text, ends, rest),
            mark_end_of_token(result);
            mark(rest));
PAWL_STORED(char*, strsep, (char** rest, const char* ends), (rest, ends), mark_end_of_token(result);
            mark(rest));

// These cut slashes off, and what follows them.
extern "C" PAWL_PUBLIC char* pawl_stored_dirname(char* path) {
  const size_t length = path == nullptr ? 0 : std::strlen(path);
  char* const result = dirname(path);
  mark_bytes(path, length);
  return result;
}
extern "C" PAWL_PUBLIC char* pawl_stored___xpg_basename(char* path) {
  const size_t length = path == nullptr ? 0 : std::strlen(path);
  char* const result = __xpg_basename(path);
  mark_bytes(path, length);
  return result;
}
