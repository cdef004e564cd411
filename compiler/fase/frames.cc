#include "frames.h"

#include <algorithm>

#include "callees.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

class Frames {
 public:
  Frames(FunctionPlan& plan, RunTime& run_time, llvm::Constant* table)
      : plan_(plan),
        run_time_(run_time),
        table_(table),
        layout_(plan.function->getParent()->getDataLayout()) {
    std::uint64_t bytes = 0;
    for (const Region& region : plan.regions) {
      bytes = std::max(bytes, region.live_ins.bytes(layout_));
    }
    if (bytes == 0) return;
    llvm::BasicBlock& entry = plan.function->getEntryBlock();
    llvm::IRBuilder<> builder(&entry, entry.getFirstInsertionPt());
    buffer_ =
        builder.CreateAlloca(llvm::ArrayType::get(builder.getInt8Ty(), bytes), nullptr, "live_ins");
    buffer_->setAlignment(llvm::Align(kSlotBytes));
  }

  void emit(unsigned number) {
    Region& region = plan_.regions[number];
    llvm::IRBuilder<> builder(region.at);
    llvm::Value* live_ins = store_live_ins(builder, region.live_ins);
    llvm::ConstantInt* number_value = builder.getInt32(number);
    switch (region.kind) {
      case RegionKind::kAtCut:
        region.begins_behind =
            builder.CreateCall(run_time_.cut(), {table_, number_value, live_ins});
        break;
      case RegionKind::kAfterUnlock: {
        llvm::CallInst* release =
            replace_lock_call(*llvm::cast<llvm::CallBase>(region.at),
                              RegionArguments{table_, number_value, live_ins});
        region.at = release;
        region.begins_behind = release;
        break;
      }
      case RegionKind::kAfterCall: {
        auto& call = llvm::cast<llvm::CallBase>(*region.at);
        if (callee_of(call) == Callee::kIndirect) {
          builder.CreateCall(run_time_.call_indirect(),
                             {table_, number_value, live_ins, call.getCalledOperand()});
        } else {
          builder.CreateCall(run_time_.call(), {table_, number_value, live_ins});
        }
        builder.SetInsertPoint(call.getNextNode());
        builder.SetCurrentDebugLocation(call.getDebugLoc());
        region.begins_behind = builder.CreateCall(run_time_.returned());
        break;
      }
    }
  }

 private:
  llvm::Value* store_live_ins(llvm::IRBuilder<>& builder, const LiveIns& live_ins) {
    if (buffer_ == nullptr) return llvm::ConstantPointerNull::get(builder.getPtrTy());
    std::uint64_t offset = 0;
    for (llvm::Value* value : live_ins.stored) {
      llvm::Value* slot = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), buffer_, offset);
      builder.CreateAlignedStore(value, slot, llvm::Align(kSlotBytes));
      offset += slot_bytes(*value, layout_);
    }
    return buffer_;
  }

  FunctionPlan& plan_;
  RunTime& run_time_;
  llvm::Constant* table_;
  const llvm::DataLayout& layout_;
  llvm::AllocaInst* buffer_ = nullptr;
};

}  // namespace

void emit_frames(FunctionPlan& plan, RunTime& run_time, llvm::Constant* table) {
  if (plan.regions.empty()) return;
  Frames frames(plan, run_time, table);
  for (unsigned number = 0; number < plan.regions.size(); ++number) frames.emit(number);
}

}  // namespace pawl::compiler::fase
