// Whether the modules of a program file mark their stores, as the store tracker asks when the
// program maps its first file (track/store_modules.h).
#pragma once

#include <string>

#include "medium/status.h"

namespace pawl::cli {

struct Marks {
  bool found = false;         // in the program or in a library that it is linked with
  std::string marked = {};    // those that have some, by their paths
  std::string without = {};   // those that have none, but for libraries whose functions are wrapped
  std::string not_read = {};  // libraries of which it is not known, and why
};

// Nothing that the program names is executed.
Result<Marks> find_marks(const std::string& program);

}  // namespace pawl::cli
