#include "remarks.h"

#include "diagnostics.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "locks.h"

namespace pawl::compiler::fase {

void tell_regions(const FunctionPlan& plan, const Sections& sections) {
  const llvm::Function& function = *plan.function;
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const bool begins = sections.before(instruction) == Inside::kNever &&
                        sections.after(instruction) != Inside::kNever;
    if (begins) remark(instruction, "a failure-atomic section begins");
  }
  for (const Region& region : plan.regions) {
    const std::string live_ins = std::to_string(region.live_ins.stored.size()) + " live-ins, " +
                                 std::to_string(region.live_ins.bytes(layout)) + " bytes";
    switch (region.kind) {
      case RegionKind::kAtCut:
        remark(*region.at, "a cut: " + region.why + " (" + live_ins + ")");
        break;
      case RegionKind::kAfterUnlock:
        remark(*region.at, "a region begins after this release (" + live_ins + ")");
        break;
      case RegionKind::kAfterCall:
        remark(*region.at, "a region begins after this call (" + live_ins + ")");
        break;
    }
  }
}

}  // namespace pawl::compiler::fase
