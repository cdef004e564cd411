// pawl_stored_*: the scanf family.  Where it stores is in its format.
#include "track/store_functions.h"

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

using pawl::in_store_region;
using pawl::stored::mark_bytes;
using pawl::stored::mark_string;

// By the names that they have in the C library: its headers call the C99 ones by the names without
// the prefix, and the oldest ones by none.  Those of C23 are of C libraries from 2.38 on.
extern "C" {
#define PAWL_DECLARE_SCANS(prefix, ...) \
  __VA_ARGS__ int prefix##vscanf(const char*, va_list); \
  __VA_ARGS__ int prefix##vfscanf(std::FILE*, const char*, va_list); \
  __VA_ARGS__ int prefix##vsscanf(const char*, const char*, va_list); \
  __VA_ARGS__ int prefix##vwscanf(const wchar_t*, va_list); \
  __VA_ARGS__ int prefix##vfwscanf(std::FILE*, const wchar_t*, va_list); \
  __VA_ARGS__ int prefix##vswscanf(const wchar_t*, const wchar_t*, va_list)
PAWL_DECLARE_SCANS(__isoc99_);
PAWL_DECLARE_SCANS(__isoc23_, __attribute__((weak)));
int pawl_oldest_vscanf(const char*, va_list) __asm__("vscanf");
int pawl_oldest_vfscanf(std::FILE*, const char*, va_list) __asm__("vfscanf");
int pawl_oldest_vsscanf(const char*, const char*, va_list) __asm__("vsscanf");
int pawl_oldest_vwscanf(const wchar_t*, va_list) __asm__("vwscanf");
int pawl_oldest_vfwscanf(std::FILE*, const wchar_t*, va_list) __asm__("vfwscanf");
int pawl_oldest_vswscanf(const wchar_t*, const wchar_t*, va_list) __asm__("vswscanf");
}

namespace {

constexpr size_t kArgumentsMax = 64;
// How far a string can have come that was broken off, without an end, at a character that cannot be
// converted, when its conversion has no width.
constexpr size_t kBrokenOffBytes = pawl::stored::kUnknownBytes;

enum class Writes { number, count, string, characters, pointer };

// One conversion that stores.
struct Conversion {
  Writes writes = Writes::number;
  size_t unit_bytes = 0;  // of the number, or of a character
  size_t width = 0;       // 0: none given
  size_t argument = 0;    // from 1 on; 0: the next one
};

// Goes through a format as scanf does.
template <class Character>
class Format {
 public:
  Format(const Character* text, bool is_oldest) : at_(text), is_oldest_(is_oldest) {}

  // The next conversion with an argument; false at the end, and at what scanf would not take.
  bool next(Conversion& conversion) {
    while (*at_ != 0) {
      if (*at_++ != '%') continue;
      if (*at_ == '%') {
        ++at_;
        continue;
      }
      bool is_stored = true;
      if (!read(conversion, is_stored)) return false;
      if (is_stored) return true;
    }
    return false;
  }

 private:
  size_t number() {
    size_t value = 0;
    for (; *at_ >= '0' && *at_ <= '9'; ++at_) value = value * 10 + static_cast<size_t>(*at_ - '0');
    return value;
  }
  bool take(char character) {
    if (*at_ != static_cast<Character>(character)) return false;
    ++at_;
    return true;
  }

  bool read(Conversion& conversion, bool& is_stored) {
    conversion = {};
    conversion.width = number();
    if (conversion.width != 0 && take('$')) {
      conversion.argument = conversion.width;
      conversion.width = 0;
    }
    while (*at_ == '*' || *at_ == '\'' || *at_ == 'I') {
      if (*at_ == '*') is_stored = false;
      ++at_;
    }
    if (conversion.width == 0) conversion.width = number();

    size_t integer_bytes = sizeof(int);
    size_t real_bytes = sizeof(float);
    bool is_wide = false;
    bool is_allocated = false;
    for (;;) {
      if (take('h')) {
        integer_bytes = integer_bytes == sizeof(short) ? sizeof(char) : sizeof(short);
      } else if (take('l')) {
        integer_bytes = sizeof(long);
        real_bytes = sizeof(double);
        is_wide = true;
      } else if (take('q') || take('j') || take('z') || take('t')) {
        integer_bytes = sizeof(long long);
      } else if (take('L')) {
        integer_bytes = sizeof(long long);
        real_bytes = sizeof(long double);
      } else if (take('w')) {
        // C23's: of so many bits, or the fast type that has them.
        const bool is_fast = take('f');
        const size_t bits = number();
        integer_bytes = is_fast && bits > 8 ? sizeof(long) : bits / 8;
      } else if (take('m')) {
        is_allocated = true;
      } else if (is_oldest_ && *at_ == 'a' && (at_[1] == 's' || at_[1] == 'S' || at_[1] == '[')) {
        ++at_;
        is_allocated = true;
      } else {
        break;
      }
    }
    const Character letter = *at_;
    if (letter == 0) return false;
    ++at_;
    switch (letter) {
      case 'd':
      case 'i':
      case 'o':
      case 'u':
      case 'x':
      case 'X':
      case 'b':
      case 'B':
        conversion.unit_bytes = integer_bytes;
        break;
      case '%':
        is_stored = false;
        break;
      case 'n':
        conversion.writes = Writes::count;
        conversion.unit_bytes = integer_bytes;
        break;
      case 'a':
      case 'A':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        conversion.unit_bytes = real_bytes;
        break;
      case 'p':
        conversion.unit_bytes = sizeof(void*);
        break;
      case 'S':
        is_wide = true;
        [[fallthrough]];
      case 's':
        conversion.writes = Writes::string;
        break;
      case 'C':
        is_wide = true;
        [[fallthrough]];
      case 'c':
        conversion.writes = Writes::characters;
        if (conversion.width == 0) conversion.width = 1;
        break;
      case '[':
        conversion.writes = Writes::string;
        skip_set();
        break;
      default:
        return false;
    }
    if (conversion.writes == Writes::string || conversion.writes == Writes::characters) {
      conversion.unit_bytes = is_wide ? sizeof(wchar_t) : sizeof(char);
      if (is_allocated) conversion.writes = Writes::pointer;
    }
    return true;
  }
  // A bracket that comes first is one of the set.
  void skip_set() {
    take('^');
    take(']');
    while (*at_ != 0 && *at_ != ']') ++at_;
    take(']');
  }

  const Character* at_;
  const bool is_oldest_;
};

// Strings are broken off only where characters have to be converted.
void mark_conversion(const Conversion& conversion, const void* to, bool was_broken_off,
                     size_t format_unit_bytes) {
  switch (conversion.writes) {
    case Writes::number:
    case Writes::count:
      return mark_bytes(to, conversion.unit_bytes);
    case Writes::characters:
      return mark_bytes(to, pawl::stored::product(conversion.width, conversion.unit_bytes));
    case Writes::pointer:
      return mark_bytes(to, sizeof(void*));
    case Writes::string:
      break;
  }
  if (was_broken_off) {
    if (conversion.unit_bytes == format_unit_bytes) return;
    const size_t bytes = pawl::stored::product(conversion.width + 1, conversion.unit_bytes);
    return mark_bytes(to,
                      conversion.width == 0 ? kBrokenOffBytes : std::min(bytes, kBrokenOffBytes));
  }
  if (conversion.unit_bytes == sizeof(wchar_t))
    mark_string(static_cast<const wchar_t*>(to));
  else if (const auto* const text = static_cast<const char*>(to); in_store_region(text))
    // The zero of a wide string that was converted stands there twice.
    mark_bytes(text, std::strlen(text) + (format_unit_bytes == sizeof(char) ? 1 : 2));
}

// The arguments of a call, marked when it is over as far as it came.
template <class Character>
class Destinations {
 public:
  Destinations(const Character* format, va_list arguments, bool is_oldest)
      : format_(format), is_oldest_(is_oldest) {
    Format<Character> conversions(format, is_oldest);
    Conversion conversion;
    size_t next = 0;
    while (conversions.next(conversion)) {
      const size_t argument = conversion.argument == 0 ? ++next : conversion.argument;
      if (argument > kArgumentsMax) break;
      count_ = std::max(count_, argument);
    }
    va_list list;
    va_copy(list, arguments);
    for (size_t i = 0; i < count_; ++i) to_[i] = va_arg(list, const void*);
    va_end(list);
  }

  // Whether any of it is to be marked.
  bool is_needed() const { return std::any_of(to_.begin(), to_.begin() + count_, in_store_region); }
  // `result` conversions were made, not counting those of %n; the next may have been begun.
  void mark_all(int result) const {
    Format<Character> conversions(format_, is_oldest_);
    Conversion conversion;
    size_t next = 0;
    int made = 0;
    while (conversions.next(conversion)) {
      const size_t argument = conversion.argument == 0 ? ++next : conversion.argument;
      if (argument > count_) return;
      mark_conversion(conversion, to_[argument - 1], made >= result, sizeof(Character));
      if (conversion.writes == Writes::count) continue;
      if (made >= result) return;
      ++made;
    }
  }

 private:
  const Character* const format_;
  const bool is_oldest_;
  size_t count_ = 0;
  std::array<const void*, kArgumentsMax> to_{};
};

}  // namespace

// Defines the function for a va_list, and the one with arguments on it.
#define PAWL_STORED_SCAN(name, v_name, v_function, is_oldest, parameters, ...) \
  extern "C" PAWL_PUBLIC int pawl_stored_##v_name(PAWL_UNPACK parameters, va_list list) { \
    const Destinations destinations(format, list, is_oldest); \
    const int result = v_function(__VA_ARGS__, list); \
    if (destinations.is_needed()) destinations.mark_all(result); \
    return result; \
  } \
  extern "C" PAWL_PUBLIC int pawl_stored_##name(PAWL_UNPACK parameters, ...) { \
    va_list list; \
    va_start(list, format); \
    const int result = pawl_stored_##v_name(__VA_ARGS__, list); \
    va_end(list); \
    return result; \
  } \
  static_assert(true)
#define PAWL_UNPACK(...) __VA_ARGS__

#define PAWL_STORED_SCANS(prefix, functions, is_oldest) \
  PAWL_STORED_SCAN(prefix##scanf, prefix##vscanf, functions##vscanf, is_oldest, \
                   (const char* format), format); \
  PAWL_STORED_SCAN(prefix##fscanf, prefix##vfscanf, functions##vfscanf, is_oldest, \
                   (std::FILE * stream, const char* format), stream, format); \
  PAWL_STORED_SCAN(prefix##sscanf, prefix##vsscanf, functions##vsscanf, is_oldest, \
                   (const char* from, const char* format), from, format); \
  PAWL_STORED_SCAN(prefix##wscanf, prefix##vwscanf, functions##vwscanf, is_oldest, \
                   (const wchar_t* format), format); \
  PAWL_STORED_SCAN(prefix##fwscanf, prefix##vfwscanf, functions##vfwscanf, is_oldest, \
                   (std::FILE * stream, const wchar_t* format), stream, format); \
  PAWL_STORED_SCAN(prefix##swscanf, prefix##vswscanf, functions##vswscanf, is_oldest, \
                   (const wchar_t* from, const wchar_t* format), from, format)

PAWL_STORED_SCANS(__isoc99_, __isoc99_, false);
PAWL_STORED_SCANS(__isoc23_, __isoc23_, false);

PAWL_STORED_SCAN(scanf, vscanf, pawl_oldest_vscanf, true, (const char* format), format);
PAWL_STORED_SCAN(fscanf, vfscanf, pawl_oldest_vfscanf, true,
                 (std::FILE * stream, const char* format), stream, format);
PAWL_STORED_SCAN(sscanf, vsscanf, pawl_oldest_vsscanf, true, (const char* from, const char* format),
                 from, format);
PAWL_STORED_SCAN(wscanf, vwscanf, pawl_oldest_vwscanf, true, (const wchar_t* format), format);
PAWL_STORED_SCAN(fwscanf, vfwscanf, pawl_oldest_vfwscanf, true,
                 (std::FILE * stream, const wchar_t* format), stream, format);
PAWL_STORED_SCAN(swscanf, vswscanf, pawl_oldest_vswscanf, true,
                 (const wchar_t* from, const wchar_t* format), from, format);
