// A file and its journal as a killed process left them, kept in case that the next look at them is
// a bad one.
#pragma once

#include <optional>
#include <string>

#include "torture/oracle.h"

namespace pawl::test {

struct Evidence {
  WriterHistory history;
  std::string workload;
  Content file;
  std::optional<Content> journal;
  std::optional<std::string> mark;
};

Evidence take_evidence(const std::string& path, const Oracle& oracle);

// Makes the directory.
void keep(const Evidence& evidence, const std::string& directory);

// Recovers a copy of what was kept and says what is wrong with it; nothing when all is well.
std::optional<std::string> audit_kept(const std::string& directory);

// The mark that Pawl leaves on an open file.
std::optional<std::string> mark_of(const std::string& path);

}  // namespace pawl::test
