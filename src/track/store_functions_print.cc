// pawl_stored_*: the printf family, and where its conversion %n leads.
#include "track/store_functions.h"

#include <printf.h>

#include <array>
#include <cstdarg>
#include <cstdio>

using pawl::stored::mark;
using pawl::stored::mark_array;
using pawl::stored::written_at_most;

extern "C" {
int __vsprintf_chk(char*, int, size_t, const char*, va_list);
int __vsnprintf_chk(char*, size_t, int, size_t, const char*, va_list);
int __vasprintf_chk(char**, int, const char*, va_list);
int __vprintf_chk(int, const char*, va_list);
int __vfprintf_chk(std::FILE*, int, const char*, va_list);
int __vdprintf_chk(int, int, const char*, va_list);
int __vswprintf_chk(wchar_t*, size_t, int, size_t, const wchar_t*, va_list);
int __vwprintf_chk(int, const wchar_t*, va_list);
int __vfwprintf_chk(std::FILE*, int, const wchar_t*, va_list);
}

namespace {

constexpr size_t kArgumentsMax = 64;
constexpr size_t kWideFormatMax = 1024;

struct Arguments {
  va_list list;
};
template <class Argument>
void skip(Arguments& arguments) {
  (void)va_arg(arguments.list, Argument);
}

// Where the arguments of %n lead.
void mark_counts(const char* format, Arguments& arguments) {
  std::array<int, kArgumentsMax> types{};
  const size_t count =
      std::min(parse_printf_format(format, types.size(), types.data()), types.size());
  for (size_t i = 0; i < count; ++i) {
    const int type = types[i];
    if ((type & PA_FLAG_PTR) != 0) {
      mark(va_arg(arguments.list, const long*));
      continue;
    }
    switch (type & ~PA_FLAG_MASK) {
      case PA_INT:
      case PA_CHAR:
        if ((type & (PA_FLAG_LONG | PA_FLAG_LONG_LONG)) != 0)
          skip<long>(arguments);
        else
          skip<int>(arguments);
        break;
      case PA_WCHAR:
        skip<int>(arguments);
        break;
      case PA_FLOAT:
      case PA_DOUBLE:
        if ((type & PA_FLAG_LONG_DOUBLE) != 0)
          skip<long double>(arguments);
        else
          skip<double>(arguments);
        break;
      default:
        skip<const void*>(arguments);
    }
  }
}
// Conversions are the same as those of the format in bytes.
void mark_counts(const wchar_t* format, Arguments& arguments) {
  std::array<char, kWideFormatMax> narrowed{};
  for (size_t i = 0; format[i] != 0 && i + 1 < narrowed.size(); ++i)
    narrowed[i] = format[i] < 0x80 ? static_cast<char>(format[i]) : '?';
  mark_counts(narrowed.data(), arguments);
}

// The arguments of a call, looked through for those of %n once the call is over.
template <class Character>
class Counts {
 public:
  Counts(const Character* format, va_list arguments) : format_(format) {
    is_needed_ = has_count();
    if (is_needed_) va_copy(arguments_.list, arguments);
  }
  ~Counts() {
    if (!is_needed_) return;
    mark_counts(format_, arguments_);
    va_end(arguments_.list);
  }
  Counts(const Counts&) = delete;
  Counts& operator=(const Counts&) = delete;

 private:
  static bool is_flag(Character character) {
    return character != 0 && character < 0x80 &&
           std::strchr("0123456789$#-+ 'I.*hlqLjzt", static_cast<int>(character)) != nullptr;
  }
  bool has_count() const {
    for (const Character* at = format_; *at != 0;) {
      if (*at++ != '%') continue;
      while (is_flag(*at)) ++at;
      if (*at == 'n') return true;
      if (*at != 0) ++at;
    }
    return false;
  }

  const Character* const format_;
  bool is_needed_ = false;
  Arguments arguments_;
};

// What stands in a buffer of `size` after a call with that result.
template <class Character>
void mark_printed(const Character* to, size_t size, int result) {
  if (result >= 0)
    mark_array(to, std::min(static_cast<size_t>(result) + 1, size));
  else
    mark_array(to, written_at_most(size));
}

// The text, too: the program's own malloc() may have given memory of a mapping for it.
void mark_made(char** to, int result) {
  mark(to);
  if (result >= 0) mark_array(*to, static_cast<size_t>(result) + 1);
}

}  // namespace

// Defines the function for a va_list, and the one with arguments on it.
#define PAWL_STORED_PRINT(name, v_name, parameters, arguments, first_arguments, ...) \
  extern "C" PAWL_PUBLIC int pawl_stored_##v_name(PAWL_UNPACK parameters, va_list list) { \
    const Counts counts(format, list); \
    const int result = v_name arguments; \
    __VA_ARGS__; \
    return result; \
  } \
  extern "C" PAWL_PUBLIC int pawl_stored_##name(PAWL_UNPACK parameters, ...) { \
    va_list list; \
    va_start(list, format); \
    const int result = pawl_stored_##v_name first_arguments; \
    va_end(list); \
    return result; \
  } \
  static_assert(true)
#define PAWL_UNPACK(...) __VA_ARGS__

PAWL_STORED_PRINT(sprintf, vsprintf, (char* to, const char* format), (to, format, list),
                  (to, format, list), mark_printed(to, ~size_t{0}, result));
PAWL_STORED_PRINT(__sprintf_chk, __vsprintf_chk,
                  (char* to, int flag, size_t room, const char* format),
                  (to, flag, room, format, list), (to, flag, room, format, list),
                  mark_printed(to, room, result));
PAWL_STORED_PRINT(snprintf, vsnprintf, (char* to, size_t size, const char* format),
                  (to, size, format, list), (to, size, format, list),
                  mark_printed(to, size, result));
PAWL_STORED_PRINT(__snprintf_chk, __vsnprintf_chk,
                  (char* to, size_t size, int flag, size_t room, const char* format),
                  (to, size, flag, room, format, list), (to, size, flag, room, format, list),
                  mark_printed(to, size, result));
PAWL_STORED_PRINT(asprintf, vasprintf, (char** to, const char* format), (to, format, list),
                  (to, format, list), mark_made(to, result));
PAWL_STORED_PRINT(__asprintf_chk, __vasprintf_chk, (char** to, int flag, const char* format),
                  (to, flag, format, list), (to, flag, format, list), mark_made(to, result));
PAWL_STORED_PRINT(printf, vprintf, (const char* format), (format, list), (format, list));
PAWL_STORED_PRINT(__printf_chk, __vprintf_chk, (int flag, const char* format), (flag, format, list),
                  (flag, format, list));
PAWL_STORED_PRINT(fprintf, vfprintf, (std::FILE * stream, const char* format),
                  (stream, format, list), (stream, format, list));
PAWL_STORED_PRINT(__fprintf_chk, __vfprintf_chk, (std::FILE * stream, int flag, const char* format),
                  (stream, flag, format, list), (stream, flag, format, list));
PAWL_STORED_PRINT(dprintf, vdprintf, (int descriptor, const char* format),
                  (descriptor, format, list), (descriptor, format, list));
PAWL_STORED_PRINT(__dprintf_chk, __vdprintf_chk, (int descriptor, int flag, const char* format),
                  (descriptor, flag, format, list), (descriptor, flag, format, list));

PAWL_STORED_PRINT(swprintf, vswprintf, (wchar_t * to, size_t size, const wchar_t* format),
                  (to, size, format, list), (to, size, format, list),
                  mark_printed(to, size, result));
PAWL_STORED_PRINT(__swprintf_chk, __vswprintf_chk,
                  (wchar_t * to, size_t size, int flag, size_t room, const wchar_t* format),
                  (to, size, flag, room, format, list), (to, size, flag, room, format, list),
                  mark_printed(to, size, result));
PAWL_STORED_PRINT(wprintf, vwprintf, (const wchar_t* format), (format, list), (format, list));
PAWL_STORED_PRINT(__wprintf_chk, __vwprintf_chk, (int flag, const wchar_t* format),
                  (flag, format, list), (flag, format, list));
PAWL_STORED_PRINT(fwprintf, vfwprintf, (std::FILE * stream, const wchar_t* format),
                  (stream, format, list), (stream, format, list));
PAWL_STORED_PRINT(__fwprintf_chk, __vfwprintf_chk,
                  (std::FILE * stream, int flag, const wchar_t* format),
                  (stream, flag, format, list), (stream, flag, format, list));
