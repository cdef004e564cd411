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

void check_size(const Region& region, const llvm::DataLayout& layout) {
  for (const llvm::Value* value : region.live_ins.stored) {
    if (value->getType()->isTokenTy() || value->getType()->isScalableTy() ||
        value->getType()->isX86_AMXTy()) {
      report_error(*region.at,
                   "a region of a failure-atomic section begins here, and a value that "
                   "it needs cannot be stored");
    }
  }
  const std::uint64_t bytes = region.live_ins.bytes(layout);
  if (bytes <= kLiveInBytesMax) return;
  report_error(*region.at, "a region of a failure-atomic section begins here, and needs " +
                               llvm::Twine(bytes) + " bytes of values; " +
                               llvm::Twine(kLiveInBytesMax) +
                               " is the most: put the code after it, or before it, into a function "
                               "of its own (noinline)");
}

}  // namespace

FunctionPlan plan_regions(llvm::Function& function, const Sections& sections,
                          llvm::FunctionAnalysisManager& analyses) {
  FunctionPlan plan;
  plan.function = &function;
  llvm::DenseMap<const llvm::Instruction*, std::string> cuts;
  for (Cut& cut : find_cuts(function, sections, analyses)) cuts[cut.before] = std::move(cut.why);
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto cut = cuts.find(&instruction);
    if (cut != cuts.end()) {
      plan.regions.push_back({RegionKind::kAtCut,
                              &instruction,
                              {},
                              line_of(instruction),
                              std::move(cut->second),
                              nullptr});
    }
    if (const std::optional<RegionKind> kind = begins_region(instruction, sections)) {
      plan.regions.push_back({*kind, &instruction, {}, line_of(instruction), {}, nullptr});
    }
  }
  if (plan.regions.empty()) return plan;
  const Liveness liveness(function);
  for (Region& region : plan.regions) {
    const bool is_cut = region.kind == RegionKind::kAtCut;
    region.live_ins = is_cut ? liveness.before(*region.at) : liveness.after(*region.at);
    check_size(region, function.getParent()->getDataLayout());
  }
  return plan;
}

}  // namespace pawl::compiler::fase
