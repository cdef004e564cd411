// The regions of a function: where each begins, and what it needs.
#pragma once

#include <string>
#include <vector>

#include "cutting.h"
#include "live_ins.h"
#include "run_time_calls.h"
#include "sections.h"

namespace pawl::compiler::fase {

struct Region {
  RegionKind kind = RegionKind::kAtCut;
  // The instruction that the cut precedes; the release of a lock; the call.
  llvm::Instruction* at = nullptr;
  LiveIns live_ins;
  std::uint32_t line = 0;
  std::string why;
  // Of the instrumented function: the region begins behind this.
  llvm::Instruction* begins_behind = nullptr;
};

struct FunctionPlan {
  llvm::Function* function = nullptr;
  std::vector<Region> regions;  // their numbers are their places here
};

// For a function that has not been changed yet since its sections were found, but for hoisting.
FunctionPlan plan_regions(llvm::Function& function, const Sections& sections,
                          llvm::FunctionAnalysisManager& analyses);

}  // namespace pawl::compiler::fase
