// What the name of a file says of it: whether it belongs to another one, or holds nothing that has
// to survive a crash.
#pragma once

#include <string>

namespace pawl::cli::watch {

enum class Neighbour {
  none,
  log,    // X-wal, X-journal, X.log of a file X, and their kin
  other,  // it is called X and something, or like X with another ending
};

// Of a file beside another: both are absolute paths.
Neighbour neighbour_of(const std::string& file, const std::string& beside);

// Locks, tables of readers, counters: what processes have in common while they run.
bool is_shared_state_by_name(const std::string& path);

}  // namespace pawl::cli::watch
