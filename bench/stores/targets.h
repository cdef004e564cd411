// What Pawl is to reach, and whether it did.
#pragma once

#include <string>
#include <vector>

#include "stores/rows.h"

namespace pawl::bench {

struct Target {
  std::string what;
  double limit = 0;
  double measured = 0;
  // The same with what was left to the background after turns added to the operations.
  double with_settling = 0;
  bool pass() const { return measured <= limit; }
};

// Those that the rows can speak of.
std::vector<Target> judge(const Rows& rows);

}  // namespace pawl::bench
