// Notes for the run-time of what was stored, and where stores into volatile memory go in recovery.
#pragma once

#include <vector>

#include "accesses.h"
#include "regions.h"
#include "run_time_calls.h"
#include "sections.h"

namespace pawl::compiler::fase {

// Writes of a function, as they stood before frames were added: one, or several that are near each
// other and share what is asked and noted.
struct NotedWrites {
  struct Part {
    llvm::Instruction* instruction = nullptr;
    Write write;
    std::int64_t offset = 0;  // from the base
  };
  std::vector<Part> parts;  // in the order of the instructions
  // Of several: what all their addresses are computed from, and the bytes from there.
  llvm::Value* base = nullptr;
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool is_inside = false;  // perhaps in a section
};

std::vector<NotedWrites> find_writes(const FunctionPlan& plan, const Sections& sections);

// Frames are there already: what is added stands between a cut and its write.
void emit_notes(const std::vector<NotedWrites>& writes, RunTime& run_time);

}  // namespace pawl::compiler::fase
