#include "preload/messages.h"

#include <cerrno>

#include "preload/real.h"

namespace pawl::preload {

void say(std::string_view call, std::string_view text) {
  const int error_number = errno;
  std::string line = "pawl: ";
  line.append(call).append(": ").append(text);
  if (line.size() > kMessageBytesMax - 1) line.resize(kMessageBytesMax - 1);
  line.push_back('\n');
  (void)!real().write(STDERR_FILENO, line.data(), line.size());  // best effort: there is errno too
  errno = error_number;
}

int refuse(std::string_view call, int error_number, std::string_view text) {
  say(call, text);
  errno = error_number;
  return -1;
}

int refuse(std::string_view call, const Status& failure) {
  return refuse(call, failure.error_number(), failure.text());
}

}  // namespace pawl::preload
