#include "mapping/last_error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pawl {
namespace {

// A plain array: a thread may fail a call while its objects are being destroyed.
constexpr std::size_t kTextBytesMax = 1024;
thread_local char text[kTextBytesMax] = "no call of this thread has failed";
thread_local pawl_error code = PAWL_ERROR_NONE;

}  // namespace

void set_last_error(const Status& status) {
  const std::size_t count = std::min(status.text().size(), kTextBytesMax - 1);
  std::memcpy(text, status.text().data(), count);
  text[count] = '\0';
  code = status.code();
  errno = status.error_number();
}

const char* last_error_text() { return text; }

pawl_error last_error_code() { return code; }

}  // namespace pawl
