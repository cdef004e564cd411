#include "medium/law.h"

#ifdef PAWL_BREAKABLE

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace pawl {
namespace {

constexpr std::array kNames = {
    "acknowledge_after_flush",
    "apply_after_flush",
    "diff_against_committed",
    "check_the_checksum",
    "one_epoch",
    "replay_is_idempotent",
    "flush_what_was_replayed",
    "flush_before_release",
    "two_headers",
    "shrink_with_the_commit",
    "cut_with_the_commit",
    "size_with_the_commit",
    "only_the_range",
    "keep_what_failed",
    "space_first",
    "failed_flush_is_final",
    "mark_before_journal",
    "tell_of_damage",
    "ranges_within_the_file",
};
static_assert(kNames.size() == static_cast<std::size_t>(Law::ranges_within_the_file) + 1);

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
