#include "medium/law.h"

#ifdef PAWL_BREAKABLE

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace pawl {
namespace {

#define PAWL_LAW_TEXT(name) #name,
constexpr std::array kNames = {PAWL_LAWS(PAWL_LAW_TEXT)};
#undef PAWL_LAW_TEXT

// The number of the law that PAWL_BREAK names; -1 when none is broken.
int broken_law() {
  const char* const wanted = std::getenv("PAWL_BREAK");
  if (wanted == nullptr || *wanted == '\0') return -1;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (std::string_view(wanted) == kNames[i]) return static_cast<int>(i);
  }
  std::fprintf(stderr, "pawl: PAWL_BREAK=%s names no law; there are:", wanted);
  for (const char* const name : kNames) std::fprintf(stderr, " %s", name);
  std::fputc('\n', stderr);
  std::_Exit(2);
}

}  // namespace

bool is_broken(Law law) {
  static const int broken = broken_law();
  return static_cast<int>(law) == broken;
}

}  // namespace pawl

#endif
