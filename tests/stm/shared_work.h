// What threads do to shared data in transactions, in all ways that gcc's interface knows.  What
// comes of it does not depend on their order.
#pragma once

#include <cstdint>

namespace pawl::test {

// A thread's share: so many turns, of these numbers; with transactions that are cancelled, or
// without.
void work(std::uint64_t seed, std::uint64_t turns, bool cancels);

struct Outcome {
  std::uint64_t counter;
  std::uint64_t small_sums;  // of bytes, halves and words
  std::uint64_t doubles;
  std::uint64_t block_sum;  // of what is copied and moved
  std::uint64_t list_sum;
  std::uint64_t torn;       // pairs that were seen unequal: none
  std::uint64_t cancelled;  // that left something: none
};
// When all threads have ended.
Outcome outcome();

}  // namespace pawl::test
