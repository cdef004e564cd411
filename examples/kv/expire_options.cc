#include "expire_options.h"

#include "text.h"

namespace kv {

ExpireOptions parse_expire_options(const Call& call) {
  ExpireOptions options;
  for (const std::string_view word : call.arguments.subspan(3)) {
    if (equal_ignoring_case(word, "NX")) {
      options.only_new = true;
    } else if (equal_ignoring_case(word, "XX")) {
      options.only_existing = true;
    } else if (equal_ignoring_case(word, "GT")) {
      options.only_later = true;
    } else if (equal_ignoring_case(word, "LT")) {
      options.only_earlier = true;
    } else {
      throw RequestError("ERR Unsupported option " + std::string(word));
    }
  }
  if (options.only_new && (options.only_existing || options.only_later || options.only_earlier)) {
    throw RequestError("ERR NX and XX, GT or LT options at the same time are not compatible");
  }
  if (options.only_later && options.only_earlier) {
    throw RequestError("ERR GT and LT options at the same time are not compatible");
  }
  return options;
}

bool allows(const ExpireOptions& options, int64_t old_ms, int64_t at_ms) {
  if (options.only_new && old_ms != 0) return false;
  if (options.only_existing && old_ms == 0) return false;
  if (options.only_later && (old_ms == 0 || at_ms <= old_ms)) return false;
  if (options.only_earlier && old_ms != 0 && at_ms >= old_ms) return false;
  return true;
}

}  // namespace kv
