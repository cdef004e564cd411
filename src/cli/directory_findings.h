// What is to be said of a directory that holds, or will hold, files of Pawl's.
#pragma once

#include <string>
#include <vector>

#include "cli/file_system.h"

namespace pawl::cli {

enum class Level { fine, note, unsafe };

// The name of the finding that says whether space can be reserved.
inline constexpr const char* kReservation = "reservation";

struct Finding {
  std::string name;   // what was looked at
  std::string value;  // what it is
  Level level = Level::fine;
  std::string why = {};  // for what is not fine: why, and what to do
};

using Findings = std::vector<Finding>;

const char* level_name(Level level);

// File system, mount options, what can be done there, and the disk.
Findings examine_directory(const FileSystemFacts& facts);

}  // namespace pawl::cli
