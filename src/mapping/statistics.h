#pragma once

#include "medium/status.h"
#include "pawl/pawl.h"

namespace pawl {

// The public struct is the one list of counters; see pawl.h for what each means.
struct MappingStatistics : pawl_statistics {};

}  // namespace pawl
