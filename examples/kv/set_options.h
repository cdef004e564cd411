// What may stand behind the value of SET.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands.h"

namespace kv {

struct SetOptions {
  bool only_new = false;
  bool only_existing = false;
  bool get = false;
  bool keep_expiry = false;
  std::string_view expiry_unit;  // EX, PX, EXAT or PXAT
  std::string_view expiry;
};

SetOptions parse_set_options(const Call& call);
// When the key is to expire; 0: never.
int64_t expiry_of(const Call& call, const SetOptions& options);

}  // namespace kv
