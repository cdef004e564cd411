// dprintf() and its kin write from within the C library, past the preload library's write(): on a
// tracked file the text is made first, and then written as any other.
#include "preload/interpose.h"

#include <cstdarg>
#include <cstdlib>
#include <memory>

#include "preload/inside.h"
#include "preload/io.h"
#include "preload/other_writers.h"
#include "preload/real.h"
#include "preload/tracked_files.h"

namespace pawl::preload {
namespace {

// Not by the C library's own writes.
bool is_for_us(int descriptor) {
  return !inside() && (table::may_be_tracked(descriptor) || may_have_other_writer(descriptor));
}

// As libc's: all of the text, or a failure.
int write_text(int descriptor, const char* text, int length) {
  for (int done = 0; done < length;) {
    const ssize_t written =
        write_bytes(descriptor, text + done, static_cast<std::size_t>(length - done), nullptr);
    if (written < 0) return -1;
    done += static_cast<int>(written);
  }
  return length;
}

// `format_text(&text)` is one of vasprintf(3).
template <class FormatText>
int write_formatted(int descriptor, const FormatText& format_text) {
  char* text = nullptr;
  const int length = format_text(&text);
  if (length < 0) return -1;
  const std::unique_ptr<char, decltype(&std::free)> made(text, std::free);
  return write_text(descriptor, text, length);
}

}  // namespace

PAWL_INTERPOSE int vdprintf(int descriptor, const char* format, va_list arguments) try {
  PAWL_KEEP_ERRNO();
  if (!is_for_us(descriptor)) PAWL_RETURN(real().vdprintf(descriptor, format, arguments));
  PAWL_RETURN(
      write_formatted(descriptor, [&](char** text) { return vasprintf(text, format, arguments); }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int __vdprintf_chk(int descriptor, int flag, const char* format,
                                  va_list arguments) try {
  PAWL_KEEP_ERRNO();
  if (!is_for_us(descriptor))
    PAWL_RETURN(real().__vdprintf_chk(descriptor, flag, format, arguments));
  PAWL_RETURN(write_formatted(
      descriptor, [&](char** text) { return __vasprintf_chk(text, flag, format, arguments); }));
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int dprintf(int descriptor, const char* format, ...) {
  PAWL_KEEP_ERRNO();
  va_list arguments;
  va_start(arguments, format);
  const int length = vdprintf(descriptor, format, arguments);
  va_end(arguments);
  PAWL_RETURN(length);
}

PAWL_INTERPOSE int __dprintf_chk(int descriptor, int flag, const char* format, ...) {
  PAWL_KEEP_ERRNO();
  va_list arguments;
  va_start(arguments, format);
  const int length = __vdprintf_chk(descriptor, flag, format, arguments);
  va_end(arguments);
  PAWL_RETURN(length);
}

}  // namespace pawl::preload
