// What a structure holds after a crash that several threads were at, as far as one can say without
// knowing in which order they came.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fase/crash/subjects.h"

namespace pawl::test {

struct Attempt {
  Operation operation;
  bool is_done = false;      // and was acknowledged
  std::uint64_t result = 0;  // of operate(), when it is done
};

// Values are put once only, and keys with a pair are one thread's each.
class Expectation {
 public:
  explicit Expectation(const Subject& subject) : subject_(subject) {}

  // By thread, in order, what was attempted since the last check.  What was found is right if each
  // attempt that was done has had its effect, once, and each that was not has had it whole or not
  // at all.  Says what is wrong; empty: nothing, and what was found is what there is from then on.
  std::string check(const std::vector<std::vector<Attempt>>& attempts, const Contents& found);

 private:
  std::string check_values(const std::vector<std::vector<Attempt>>& attempts,
                           const Contents& found);
  std::string check_pairs(const std::vector<std::vector<Attempt>>& attempts, const Contents& found);

  const Subject& subject_;
  std::set<std::uint64_t> values_;
  std::map<std::uint64_t, std::uint64_t> pairs_;
};

}  // namespace pawl::test
