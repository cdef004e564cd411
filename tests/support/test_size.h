// How much a test tries: in a quick run less (cmake/test_sizes.cmake, which has the sizes that
// programs take as arguments).
#pragma once

namespace pawl::test {

template <class Number>
constexpr Number at_size([[maybe_unused]] Number quick, [[maybe_unused]] Number full) {
#ifdef PAWL_QUICK
  return quick;
#else
  return full;
#endif
}

}  // namespace pawl::test
