// pawl_stored_*: <wchar.h>, <uchar.h> and the conversions of <stdlib.h> and <iconv.h>.
#include "track/store_functions.h"

#include <iconv.h>

#include <cstdlib>
#include <cuchar>

using pawl::stored::mark;
using pawl::stored::mark_array;
using pawl::stored::mark_bytes;
using pawl::stored::mark_count;
using pawl::stored::mark_string;

extern "C" {
wchar_t* __wmemcpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wmemmove_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wmempcpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wmemset_chk(wchar_t*, wchar_t, size_t, size_t);
wchar_t* __wcscpy_chk(wchar_t*, const wchar_t*, size_t);
wchar_t* __wcpcpy_chk(wchar_t*, const wchar_t*, size_t);
wchar_t* __wcsncpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wcpncpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wcscat_chk(wchar_t*, const wchar_t*, size_t);
wchar_t* __wcsncat_chk(wchar_t*, const wchar_t*, size_t, size_t);
size_t __mbstowcs_chk(wchar_t*, const char*, size_t, size_t);
size_t __wcstombs_chk(char*, const wchar_t*, size_t, size_t);
int __wctomb_chk(char*, wchar_t, size_t);
size_t __wcrtomb_chk(char*, wchar_t, mbstate_t*, size_t);
size_t __mbsrtowcs_chk(wchar_t*, const char**, size_t, mbstate_t*, size_t);
size_t __mbsnrtowcs_chk(wchar_t*, const char**, size_t, size_t, mbstate_t*, size_t);
size_t __wcsrtombs_chk(char*, const wchar_t**, size_t, mbstate_t*, size_t);
size_t __wcsnrtombs_chk(char*, const wchar_t**, size_t, size_t, mbstate_t*, size_t);
}

PAWL_STORED(wchar_t*, wmemcpy, (wchar_t * to, const wchar_t* from, size_t count), (to, from, count),
            mark_array(to, count));
PAWL_STORED(wchar_t*, __wmemcpy_chk, (wchar_t * to, const wchar_t* from, size_t count, size_t room),
            (to, from, count, room), mark_array(to, count));
PAWL_STORED(wchar_t*, wmemmove, (wchar_t * to, const wchar_t* from, size_t count),
            (to, from, count), mark_array(to, count));
PAWL_STORED(wchar_t*, __wmemmove_chk,
            (wchar_t * to, const wchar_t* from, size_t count, size_t room), (to, from, count, room),
            mark_array(to, count));
PAWL_STORED(wchar_t*, wmempcpy, (wchar_t * to, const wchar_t* from, size_t count),
            (to, from, count), mark_array(to, count));
PAWL_STORED(wchar_t*, __wmempcpy_chk,
            (wchar_t * to, const wchar_t* from, size_t count, size_t room), (to, from, count, room),
            mark_array(to, count));
PAWL_STORED(wchar_t*, wmemset, (wchar_t * to, wchar_t value, size_t count), (to, value, count),
            mark_array(to, count));
PAWL_STORED(wchar_t*, __wmemset_chk, (wchar_t * to, wchar_t value, size_t count, size_t room),
            (to, value, count, room), mark_array(to, count));

PAWL_STORED(wchar_t*, wcsdup, (const wchar_t* from), (from), mark_string(result));
PAWL_STORED(wchar_t*, wcscpy, (wchar_t * to, const wchar_t* from), (to, from), mark_string(to));
PAWL_STORED(wchar_t*, __wcscpy_chk, (wchar_t * to, const wchar_t* from, size_t room),
            (to, from, room), mark_string(to));
PAWL_STORED(wchar_t*, wcpcpy, (wchar_t * to, const wchar_t* from), (to, from), mark_string(to));
PAWL_STORED(wchar_t*, __wcpcpy_chk, (wchar_t * to, const wchar_t* from, size_t room),
            (to, from, room), mark_string(to));
PAWL_STORED(wchar_t*, wcsncpy, (wchar_t * to, const wchar_t* from, size_t count), (to, from, count),
            mark_array(to, count));
PAWL_STORED(wchar_t*, __wcsncpy_chk, (wchar_t * to, const wchar_t* from, size_t count, size_t room),
            (to, from, count, room), mark_array(to, count));
PAWL_STORED(wchar_t*, wcpncpy, (wchar_t * to, const wchar_t* from, size_t count), (to, from, count),
            mark_array(to, count));
PAWL_STORED(wchar_t*, __wcpncpy_chk, (wchar_t * to, const wchar_t* from, size_t count, size_t room),
            (to, from, count, room), mark_array(to, count));

#define PAWL_STORED_BEHIND(name, parameters, arguments) \
  extern "C" PAWL_PUBLIC wchar_t* pawl_stored_##name parameters { \
    wchar_t* const end = to + std::wcslen(to); \
    wchar_t* const result = name arguments; \
    mark_string(end); \
    return result; \
  } \
  static_assert(true)
PAWL_STORED_BEHIND(wcscat, (wchar_t * to, const wchar_t* from), (to, from));
PAWL_STORED_BEHIND(__wcscat_chk, (wchar_t * to, const wchar_t* from, size_t room),
                   (to, from, room));
PAWL_STORED_BEHIND(wcsncat, (wchar_t * to, const wchar_t* from, size_t count), (to, from, count));
PAWL_STORED_BEHIND(__wcsncat_chk, (wchar_t * to, const wchar_t* from, size_t count, size_t room),
                   (to, from, count, room));

PAWL_STORED(size_t, wcsxfrm, (wchar_t * to, const wchar_t* from, size_t size), (to, from, size),
            mark_array(to, std::min(result + 1, size)));
PAWL_STORED(size_t, wcsxfrm_l, (wchar_t * to, const wchar_t* from, size_t size, locale_t locale),
            (to, from, size, locale), mark_array(to, std::min(result + 1, size)));
PAWL_STORED(wchar_t*, wcstok, (wchar_t * text, const wchar_t* ends, wchar_t** rest),
            (text, ends, rest),
            if (result != nullptr && pawl::in_store_region(result))
                mark(result + std::wcslen(result));
            mark(rest));

// Characters, one by one.  The longest has MB_LEN_MAX bytes; what was not converted wrote nothing.
namespace {

constexpr size_t kFailed = ~size_t{0} - 2;  // and -1: incomplete and wrong ones

void mark_converted(const char* to, size_t count) {
  if (count < kFailed) mark_bytes(to, count);
}
template <class Character>
void mark_character(const Character* to, size_t outcome) {
  if (outcome != ~size_t{0} && outcome != ~size_t{0} - 1) mark(to);
}

}  // namespace

PAWL_STORED(int, mbtowc, (wchar_t * to, const char* from, size_t count), (to, from, count),
            if (result >= 0) mark(to));
PAWL_STORED(int, wctomb, (char* to, wchar_t from), (to, from), mark_count(to, result));
PAWL_STORED(int, __wctomb_chk, (char* to, wchar_t from, size_t room), (to, from, room),
            mark_count(to, result));
PAWL_STORED(size_t, mbrlen, (const char* from, size_t count, mbstate_t* state),
            (from, count, state), mark(state));
PAWL_STORED(size_t, mbrtowc, (wchar_t * to, const char* from, size_t count, mbstate_t* state),
            (to, from, count, state), mark_character(to, result);
            mark(state));
PAWL_STORED(size_t, wcrtomb, (char* to, wchar_t from, mbstate_t* state), (to, from, state),
            mark_converted(to, result);
            mark(state));
PAWL_STORED(size_t, __wcrtomb_chk, (char* to, wchar_t from, mbstate_t* state, size_t room),
            (to, from, state, room), mark_converted(to, result);
            mark(state));
PAWL_STORED(size_t, mbrtoc16, (char16_t* to, const char* from, size_t count, mbstate_t* state),
            (to, from, count, state), mark_character(to, result);
            mark(state));
PAWL_STORED(size_t, c16rtomb, (char* to, char16_t from, mbstate_t* state), (to, from, state),
            mark_converted(to, result);
            mark(state));
// Of C libraries from 2.36 on.
// NOLINTBEGIN(readability-redundant-declaration)
extern "C" {
__attribute__((weak)) size_t mbrtoc8(char8_t* to, const char* from, size_t count,
                                     mbstate_t* state) noexcept;
__attribute__((weak)) size_t c8rtomb(char* to, char8_t from, mbstate_t* state) noexcept;
}
// NOLINTEND(readability-redundant-declaration)
PAWL_STORED(size_t, mbrtoc8, (char8_t* to, const char* from, size_t count, mbstate_t* state),
            (to, from, count, state), mark_character(to, result);
            mark(state));
PAWL_STORED(size_t, c8rtomb, (char* to, char8_t from, mbstate_t* state), (to, from, state),
            mark_converted(to, result);
            mark(state));
PAWL_STORED(size_t, mbrtoc32, (char32_t* to, const char* from, size_t count, mbstate_t* state),
            (to, from, count, state), mark_character(to, result);
            mark(state));
PAWL_STORED(size_t, c32rtomb, (char* to, char32_t from, mbstate_t* state), (to, from, state),
            mark_converted(to, result);
            mark(state));

// Strings.  Where one was wrong, the part before it was written.
namespace {

template <class Character>
void mark_converted_string(const Character* to, size_t result, size_t size) {
  if (to == nullptr) return;
  if (result == ~size_t{0}) size = pawl::stored::written_at_most(size);
  mark_array(to, result < size ? result + 1 : size);
}

}  // namespace

PAWL_STORED(size_t, mbstowcs, (wchar_t * to, const char* from, size_t size), (to, from, size),
            mark_converted_string(to, result, size));
PAWL_STORED(size_t, __mbstowcs_chk, (wchar_t * to, const char* from, size_t size, size_t room),
            (to, from, size, room), mark_converted_string(to, result, size));
PAWL_STORED(size_t, wcstombs, (char* to, const wchar_t* from, size_t size), (to, from, size),
            mark_converted_string(to, result, size));
PAWL_STORED(size_t, __wcstombs_chk, (char* to, const wchar_t* from, size_t size, size_t room),
            (to, from, size, room), mark_converted_string(to, result, size));
PAWL_STORED(size_t, mbsrtowcs, (wchar_t * to, const char** from, size_t size, mbstate_t* state),
            (to, from, size, state), mark_converted_string(to, result, size);
            mark(from); mark(state));
PAWL_STORED(size_t, __mbsrtowcs_chk,
            (wchar_t * to, const char** from, size_t size, mbstate_t* state, size_t room),
            (to, from, size, state, room), mark_converted_string(to, result, size);
            mark(from); mark(state));
PAWL_STORED(size_t, mbsnrtowcs,
            (wchar_t * to, const char** from, size_t count, size_t size, mbstate_t* state),
            (to, from, count, size, state), mark_converted_string(to, result, size);
            mark(from); mark(state));
PAWL_STORED(size_t, __mbsnrtowcs_chk,
            (wchar_t * to, const char** from, size_t count, size_t size, mbstate_t* state,
             size_t room),
            (to, from, count, size, state, room), mark_converted_string(to, result, size);
            mark(from); mark(state));
PAWL_STORED(size_t, wcsrtombs, (char* to, const wchar_t** from, size_t size, mbstate_t* state),
            (to, from, size, state), mark_converted_string(to, result, size);
            mark(from); mark(state));
PAWL_STORED(size_t, __wcsrtombs_chk,
            (char* to, const wchar_t** from, size_t size, mbstate_t* state, size_t room),
            (to, from, size, state, room), mark_converted_string(to, result, size);
            mark(from); mark(state));
PAWL_STORED(size_t, wcsnrtombs,
            (char* to, const wchar_t** from, size_t count, size_t size, mbstate_t* state),
            (to, from, count, size, state), mark_converted_string(to, result, size);
            mark(from); mark(state));
PAWL_STORED(size_t, __wcsnrtombs_chk,
            (char* to, const wchar_t** from, size_t count, size_t size, mbstate_t* state,
             size_t room),
            (to, from, count, size, state, room), mark_converted_string(to, result, size);
            mark(from); mark(state));

extern "C" PAWL_PUBLIC size_t pawl_stored_iconv(iconv_t conversion, char** from, size_t* from_left,
                                                char** to, size_t* to_left) {
  const char* const start = to == nullptr ? nullptr : *to;
  const size_t result = iconv(conversion, from, from_left, to, to_left);
  if (start != nullptr) mark_count(start, *to - start);
  mark(from);
  mark(from_left);
  mark(to);
  mark(to_left);
  return result;
}
