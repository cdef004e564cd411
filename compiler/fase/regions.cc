#include "regions.h"

#include <algorithm>

#include "callees.h"
#include "diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

// The kind of region that the instruction begins behind itself, if it does.
std::optional<RegionKind> begins_region(const llvm::Instruction& instruction,
                                        const Sections& sections) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || sections.before(instruction) == Inside::kNever) return std::nullopt;
  if (lock_operation(*call) == LockOperation::kRelease) {
    const bool ends_section = sections.after(instruction) == Inside::kNever;
    return ends_section ? std::nullopt : std::optional(RegionKind::kAfterUnlock);
  }
  return sections.may_cut(*call) ? std::optional(RegionKind::kAfterCall) : std::nullopt;
}

Region region_at(RegionKind kind, llvm::Instruction& instruction) {
  Region region;
  region.kind = kind;
  region.at = &instruction;
  region.line = line_of(instruction);
  return region;
}

}  // namespace

FunctionPlan plan_regions(llvm::Function& function, const Sections& sections,
                          llvm::FunctionAnalysisManager& analyses) {
  FunctionPlan plan;
  plan.function = &function;
  llvm::DenseMap<const llvm::Instruction*, Cut> cuts;
  for (Cut& cut : find_cuts(function, sections, analyses)) cuts[cut.before] = std::move(cut);
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto cut = cuts.find(&instruction);
    if (cut != cuts.end()) {
      Region& region = plan.regions.emplace_back(region_at(RegionKind::kAtCut, instruction));
      region.why = std::move(cut->second.why);
      region.only_for = std::move(cut->second.only_for);
    }
    if (const std::optional<RegionKind> kind = begins_region(instruction, sections)) {
      plan.regions.push_back(region_at(*kind, instruction));
    }
  }
  return plan;
}

}  // namespace pawl::compiler::fase
