// libc's calls that close all descriptors, around Pawl's own.  The preload library brings its own
// instead.
#include "medium/next_function.h"

#include <unistd.h>

#include <algorithm>

#include "medium/own_descriptors.h"

namespace {

namespace own = pawl::own_descriptors;

#define PAWL_WRAPPED(X) X(close_range) X(closefrom)
PAWL_DEFINE_NEXT_FUNCTIONS(PAWL_WRAPPED)

int close_range_but_own(unsigned first, unsigned last, int flags) {
  return own::close_others(first, last, own::between(first, last), [&](unsigned from, unsigned to) {
    return next().close_range(from, to, flags);
  });
}

}  // namespace

void own::link_wrappers() {}

PAWL_WRAPPER int close_range(unsigned first, unsigned last, int flags) noexcept {
  const bool closes = (static_cast<unsigned>(flags) & CLOSE_RANGE_CLOEXEC) == 0;
  if (!closes || first > last) return next().close_range(first, last, flags);
  return close_range_but_own(first, last, flags);
}

PAWL_WRAPPER void closefrom(int first) noexcept {
  const auto from = static_cast<unsigned>(std::max(first, 0));
  const auto kept = own::between(from, ~0u);
  if (kept.empty()) return next().closefrom(first);
  if (close_range_but_own(from, ~0u, 0) == 0) return;
  // A kernel without close_range (before 5.9).
  next().closefrom(kept.back() + 1);
  for (int number = first; number < kept.back(); ++number) {
    if (!std::binary_search(kept.begin(), kept.end(), number)) ::close(number);
  }
}
