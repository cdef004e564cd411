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
  std::uint32_t line = 0;
  std::string why;
  std::vector<llvm::Value*> only_for;  // of a cut: see cutting.h

  // Of the instrumented function: the call that logs the frame,
  llvm::CallInst* frame = nullptr;
  // the instruction behind which the region begins, and what it needs there.
  llvm::Instruction* begins_behind = nullptr;
  LiveIns live_ins;
};

struct FunctionPlan {
  llvm::Function* function = nullptr;
  std::vector<Region> regions;  // their numbers are their places here
};

// For a function that has not been changed yet since its sections were found, but for hoisting.
FunctionPlan plan_regions(llvm::Function& function, const Sections& sections,
                          llvm::FunctionAnalysisManager& analyses);

}  // namespace pawl::compiler::fase
