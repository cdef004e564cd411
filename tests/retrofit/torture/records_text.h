// Records as lines, key, tab, value: how processes hand them to each other.
#pragma once

#include <istream>
#include <ostream>

#include "torture/operations.h"

namespace pawl::retrofit {

void write_records(const Model& records, std::ostream& out);
Model read_records(std::istream& in);

}  // namespace pawl::retrofit
