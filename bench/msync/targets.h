// What Pawl is to reach, and whether it did.
#pragma once

#include <string>
#include <vector>

#include "msync/cases.h"

namespace pawl::bench {

struct Target {
  std::string what;
  double limit = 0;
  double measured = 0;
  // The same with the stores counted in, where trackers have a price too; 0 where that has no
  // meaning.
  double with_stores = 0;
  bool pass() const { return measured <= limit; }
};

// Those that the rows can speak of.
std::vector<Target> judge(const Results& results);

}  // namespace pawl::bench
