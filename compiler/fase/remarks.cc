#include "remarks.h"

#include "diagnostics.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "locks.h"

namespace pawl::compiler::fase {

void tell_sections(const llvm::Function& function, const Sections& sections) {
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const bool begins = sections.before(instruction) == Inside::kNever &&
                        sections.after(instruction) != Inside::kNever;
    if (begins) remark(instruction, "a failure-atomic section begins");
  }
}

void tell_regions(const FunctionPlan& plan) {
  const llvm::DataLayout& layout = plan.function->getParent()->getDataLayout();
  for (const Region& region : plan.regions) {
    const std::string live_ins =
        std::to_string(region.live_ins.stored.size() + region.live_ins.locals.size() +
                       region.live_ins.globals.size()) +
        " live-ins, " + std::to_string(region.live_ins.bytes(layout)) + " bytes";
    switch (region.kind) {
      case RegionKind::kAtCut:
        remark(*region.frame,
               (region.only_for.empty() ? "a cut: " : "a cut, if that is persistent: ") +
                   region.why + " (" + live_ins + ")");
        break;
      case RegionKind::kAfterUnlock:
        remark(*region.frame, "a region begins after this release (" + live_ins + ")");
        break;
      case RegionKind::kAfterCall:
        remark(*region.frame, "a region begins after this call (" + live_ins + ")");
        break;
    }
  }
}

}  // namespace pawl::compiler::fase
