// What may stand behind EXPIRE.
#pragma once

#include <cstdint>

#include "commands.h"

namespace kv {

struct ExpireOptions {
  bool only_new = false;
  bool only_existing = false;
  bool only_later = false;
  bool only_earlier = false;
};

ExpireOptions parse_expire_options(const Call& call);
// Whether a key that expires at old_ms may expire at at_ms instead.
bool allows(const ExpireOptions& options, int64_t old_ms, int64_t at_ms);

}  // namespace kv
