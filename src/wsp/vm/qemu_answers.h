// What QEMU's answers say of a machine; of answers of any shape.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "medium/status.h"
#include "wsp/vm/qmp.h"

namespace pawl::wsp::vm {

// "7.2.22 (Debian ...)", cut to what a marker has room for.
std::string version_in(const Qmp::Json& answer);

// A question of what the machine consists of: a list, of which each part is put into words.
struct PartQuery {
  const char* command;
  Qmp::Json (*arguments)();
  std::string (*in_words)(const Qmp::Json& part);
};
constexpr std::size_t kPartQueriesCount = 4;
const std::array<PartQuery, kPartQueriesCount>& part_queries();

// Of the answer to query-named-block-nodes, the files of disks in order; as Machine::disk_files().
Result<std::vector<std::string>> disk_files_in(const Qmp::Json& nodes);

}  // namespace pawl::wsp::vm
