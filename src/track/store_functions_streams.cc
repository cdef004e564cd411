// pawl_stored_*: the rest of <stdio.h> and <wchar.h>: what is read from streams.
#include "track/store_functions.h"

#include <cerrno>
#include <climits>
#include <cstdio>

using pawl::stored::mark;
using pawl::stored::mark_array;
using pawl::stored::mark_bytes;
using pawl::stored::mark_string;
using pawl::stored::product;

extern "C" {
size_t __fread_chk(void*, size_t, size_t, size_t, std::FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, std::FILE*);
char* __fgets_chk(char*, size_t, int, std::FILE*);
char* __fgets_unlocked_chk(char*, size_t, int, std::FILE*);
wchar_t* __fgetws_chk(wchar_t*, size_t, int, std::FILE*);
wchar_t* __fgetws_unlocked_chk(wchar_t*, size_t, int, std::FILE*);
}

namespace {

// A part of an item that came last is stored, too.
void mark_items(const void* to, size_t size, size_t count, size_t result) {
  mark_bytes(to, product(size, result < count ? result + 1 : result));
}

size_t length_of(const char* text, size_t size) { return ::strnlen(text, size); }
size_t length_of(const wchar_t* text, size_t size) { return ::wcsnlen(text, size); }

// A line ends with its newline, or with a full buffer.  If neither is before the first zero, then
// the file has zeros, or has ended, or could not be read: then all that may have been written
// counts.
template <class Character>
void mark_line(const Character* to, int size, const Character* result) {
  if (size <= 0 || !pawl::in_store_region(to)) return;
  const auto room = static_cast<size_t>(size);
  const size_t length = result == nullptr ? 0 : length_of(to, room);
  const bool is_whole = length > 0 && (to[length - 1] == '\n' || length + 1 == room);
  mark_array(to, is_whole ? length + 1 : room);
}

}  // namespace

PAWL_STORED(size_t, fread, (void* to, size_t size, size_t count, std::FILE* stream),
            (to, size, count, stream), mark_items(to, size, count, result));
PAWL_STORED(size_t, fread_unlocked, (void* to, size_t size, size_t count, std::FILE* stream),
            (to, size, count, stream), mark_items(to, size, count, result));
PAWL_STORED(size_t, __fread_chk,
            (void* to, size_t room, size_t size, size_t count, std::FILE* stream),
            (to, room, size, count, stream), mark_items(to, size, count, result));
PAWL_STORED(size_t, __fread_unlocked_chk,
            (void* to, size_t room, size_t size, size_t count, std::FILE* stream),
            (to, room, size, count, stream), mark_items(to, size, count, result));

PAWL_STORED(char*, fgets, (char* to, int size, std::FILE* stream), (to, size, stream),
            mark_line(to, size, result));
PAWL_STORED(char*, fgets_unlocked, (char* to, int size, std::FILE* stream), (to, size, stream),
            mark_line(to, size, result));
PAWL_STORED(char*, __fgets_chk, (char* to, size_t room, int size, std::FILE* stream),
            (to, room, size, stream), mark_line(to, size, result));
PAWL_STORED(char*, __fgets_unlocked_chk, (char* to, size_t room, int size, std::FILE* stream),
            (to, room, size, stream), mark_line(to, size, result));
PAWL_STORED(wchar_t*, fgetws, (wchar_t * to, int size, std::FILE* stream), (to, size, stream),
            mark_line(to, size, result));
PAWL_STORED(wchar_t*, fgetws_unlocked, (wchar_t * to, int size, std::FILE* stream),
            (to, size, stream), mark_line(to, size, result));
PAWL_STORED(wchar_t*, __fgetws_chk, (wchar_t * to, size_t room, int size, std::FILE* stream),
            (to, room, size, stream), mark_line(to, size, result));
PAWL_STORED(wchar_t*, __fgetws_unlocked_chk,
            (wchar_t * to, size_t room, int size, std::FILE* stream), (to, room, size, stream),
            mark_line(to, size, result));

// The line itself is the C library's memory, unless the program gave its own.
#define PAWL_STORED_LINE(name, parameters, arguments) \
  PAWL_STORED(__ssize_t, name, parameters, arguments, mark(line); mark(size); \
              if (result >= 0 && line != nullptr) \
                  mark_bytes(*line, static_cast<size_t>(result) + 1))
PAWL_STORED_LINE(getline, (char** line, size_t* size, std::FILE* stream), (line, size, stream));
PAWL_STORED_LINE(getdelim, (char** line, size_t* size, int end, std::FILE* stream),
                 (line, size, end, stream));
PAWL_STORED_LINE(__getdelim, (char** line, size_t* size, int end, std::FILE* stream),
                 (line, size, end, stream));

PAWL_STORED(int, fgetpos, (std::FILE * stream, std::fpos_t* position), (stream, position),
            mark(position));
PAWL_STORED(int, fgetpos64, (std::FILE * stream, fpos64_t* position), (stream, position),
            mark(position));
PAWL_STORED(char*, ctermid, (char* to), (to), mark_string(to));
