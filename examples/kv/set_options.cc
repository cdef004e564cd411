#include "set_options.h"

#include "text.h"

namespace kv {

SetOptions parse_set_options(const Call& call) {
  SetOptions options;
  for (size_t at = 3; at < call.size(); ++at) {
    const std::string_view word = call[at];
    const bool is_expiry = equal_ignoring_case(word, "EX") || equal_ignoring_case(word, "PX") ||
                           equal_ignoring_case(word, "EXAT") || equal_ignoring_case(word, "PXAT");
    if (equal_ignoring_case(word, "NX") && !options.only_existing) {
      options.only_new = true;
    } else if (equal_ignoring_case(word, "XX") && !options.only_new) {
      options.only_existing = true;
    } else if (equal_ignoring_case(word, "GET")) {
      options.get = true;
    } else if (equal_ignoring_case(word, "KEEPTTL") && options.expiry_unit.empty()) {
      options.keep_expiry = true;
    } else if (is_expiry && !options.keep_expiry && at + 1 < call.size() &&
               (options.expiry_unit.empty() || equal_ignoring_case(options.expiry_unit, word))) {
      options.expiry_unit = word;
      options.expiry = call[++at];
    } else {
      throw_syntax_error();
    }
  }
  return options;
}

int64_t expiry_of(const Call& call, const SetOptions& options) {
  if (options.expiry_unit.empty()) return 0;
  if (integer_argument(options.expiry) <= 0) {
    throw RequestError("ERR invalid expire time in 'set' command");
  }
  const bool seconds = equal_ignoring_case(options.expiry_unit.substr(0, 1), "E");
  const bool relative = options.expiry_unit.size() == 2;
  return expiry_argument(options.expiry, seconds ? 1000 : 1, relative ? call.now_ms : 0, "set");
}

}  // namespace kv
