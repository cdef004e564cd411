#include "frames.h"

#include <algorithm>

#include "callees.h"
#include "diagnostics.h"
#include "faults.h"
#include "live_ins.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "locks.h"
#include "provenance.h"
#include "window.h"

namespace pawl::compiler::fase {
namespace {

// An exception leaves the callee, too.  Several calls may have one place where they are caught.
void return_where_caught(llvm::InvokeInst& invoke, RunTime& run_time) {
  llvm::Instruction* place = &*invoke.getUnwindDest()->getFirstInsertionPt();
  const auto* there = llvm::dyn_cast<llvm::CallInst>(place);
  if (there != nullptr && there->getCalledOperand() == run_time.returned().getCallee()) return;
  llvm::IRBuilder<> builder(place);
  builder.SetCurrentDebugLocation(invoke.getDebugLoc());
  builder.CreateCall(run_time.returned());
}

// Where the cut is made: always, or on the way on which it is needed.
llvm::Instruction* place_of_cut(const Region& region) {
  if (region.only_for.empty()) return region.at;
  llvm::IRBuilder<> builder(region.at);
  builder.SetCurrentDebugLocation(region.at->getDebugLoc());
  llvm::Value* is_needed = nullptr;
  for (llvm::Value* object : region.only_for) {
    llvm::Value* is_persistent = is_in_window(builder, object);
    is_needed = is_needed == nullptr ? is_persistent : builder.CreateOr(is_needed, is_persistent);
  }
  return llvm::SplitBlockAndInsertIfThen(is_needed, region.at, /*Unreachable=*/false);
}

void place(Region& region, unsigned number, RunTime& run_time, llvm::Constant* table) {
  llvm::IRBuilder<> builder(region.at);
  auto* no_live_ins = llvm::ConstantPointerNull::get(builder.getPtrTy());
  llvm::ConstantInt* number_value = builder.getInt32(number);
  switch (region.kind) {
    case RegionKind::kAtCut:
      builder.SetInsertPoint(place_of_cut(region));
      builder.SetCurrentDebugLocation(region.at->getDebugLoc());
      region.frame = builder.CreateCall(run_time.cut(), {table, number_value, no_live_ins});
      region.begins_behind = region.frame;
      break;
    case RegionKind::kAfterUnlock:
      region.frame = replace_lock_call(*llvm::cast<llvm::CallBase>(region.at),
                                       RegionArguments{table, number_value, no_live_ins});
      region.begins_behind = region.frame;
      region.at = region.frame;
      break;
    case RegionKind::kAfterCall: {
      auto& call = llvm::cast<llvm::CallBase>(*region.at);
      if (callee_of(call) == Callee::kIndirect) {
        region.frame = builder.CreateCall(
            run_time.call_indirect(), {table, number_value, no_live_ins, call.getCalledOperand()});
      } else {
        region.frame = builder.CreateCall(run_time.call(), {table, number_value, no_live_ins});
      }
      // The block that an invoke goes on to is its own.
      auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&call);
      builder.SetInsertPoint(invoke == nullptr ? call.getNextNode()
                                               : &*invoke->getNormalDest()->getFirstInsertionPt());
      builder.SetCurrentDebugLocation(call.getDebugLoc());
      region.begins_behind = builder.CreateCall(run_time.returned());
      if (invoke == nullptr) break;
      return_where_caught(*invoke, run_time);
      break;
    }
  }
}

// The argument of the frame's call that says where live-ins are: that behind the region's number,
// or the last one where a lock comes first.
unsigned live_ins_argument(const Region& region) {
  constexpr unsigned kBehindFunctionAndRegion = 2;
  return region.kind == RegionKind::kAfterUnlock ? region.frame->arg_size() - 1
                                                 : kBehindFunctionAndRegion;
}

// What fills the slot of a value: no byte of it is left from another region, so that two frames of
// the same values are the same.
llvm::Value* whole_slot(llvm::Value& value, llvm::IRBuilder<>& builder) {
  const auto* integer = llvm::dyn_cast<llvm::IntegerType>(value.getType());
  const bool is_narrow = integer != nullptr && integer->getBitWidth() < kSlotBytes * 8;
  return is_narrow ? builder.CreateZExt(&value, builder.getInt64Ty()) : &value;
}

void store_live_ins(Region& region, llvm::Value* buffer, const llvm::DataLayout& layout) {
  llvm::IRBuilder<> builder(region.frame);
  std::uint64_t offset = 0;
  for (llvm::Value* value : region.live_ins.stored) {
    llvm::Value* slot = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), buffer, offset);
    if (offset != 0 || !has_fault("live-ins"))
      builder.CreateAlignedStore(whole_slot(*value, builder), slot, llvm::Align(kSlotBytes));
    offset += slot_bytes(value->getType(), layout);
  }
  for (llvm::AllocaInst* variable : region.live_ins.locals) {
    const std::uint64_t bytes = content_bytes(*variable, layout);
    llvm::Value* slot = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), buffer, offset);
    builder.CreateMemCpy(slot, llvm::Align(kSlotBytes), variable, variable->getAlign(), bytes);
    offset += llvm::alignTo(bytes, kSlotBytes);
  }
  for (const auto& [pointer, type] : region.live_ins.globals) {
    llvm::Value* slot = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), buffer, offset);
    const llvm::Align natural = layout.getABITypeAlign(type);
    llvm::Value* value = builder.CreateAlignedLoad(
        type, pointer, std::min(natural, pointer->getPointerAlignment(layout)));
    builder.CreateAlignedStore(value, slot, llvm::Align(kSlotBytes));
    offset += slot_bytes(type, layout);
  }
  region.frame->setArgOperand(live_ins_argument(region), buffer);
}

void check(const Region& region, const llvm::DataLayout& layout) {
  for (const llvm::Value* value : region.live_ins.stored) {
    llvm::Type* type = value->getType();
    if (type->isTokenTy() || type->isScalableTy() || type->isX86_AMXTy()) {
      report_error(*region.frame,
                   "a region of a failure-atomic section begins here, and a value "
                   "that it needs cannot be stored");
    }
  }
  for (const llvm::Value* value : region.live_ins.stored) {
    if (!value->getType()->isPointerTy() || !is_local_variable(value)) continue;
    report_error(*region.frame,
                 "a region of a failure-atomic section begins here, and needs the "
                 "address of a variable on the stack, which is another one when it is "
                 "resumed: access the variable by its name, or keep it in persistent "
                 "memory");
    break;
  }
  const std::uint64_t bytes = region.live_ins.bytes(layout);
  if (bytes <= kLiveInBytesMax) return;
  report_error(*region.frame, "a region of a failure-atomic section begins here, and needs " +
                                  llvm::Twine(bytes) + " bytes of values; " +
                                  llvm::Twine(kLiveInBytesMax) +
                                  " is the most: put the code after it, or before it, into a "
                                  "function of its own (noinline), or have its loops not unrolled "
                                  "(-fno-unroll-loops)");
}

}  // namespace

void place_frames(FunctionPlan& plan, RunTime& run_time, llvm::Constant* table) {
  for (unsigned number = 0; number < plan.regions.size(); ++number) {
    place(plan.regions[number], number, run_time, table);
  }
}

void fill_frames(FunctionPlan& plan, const KeptGlobals& globals) {
  if (plan.regions.empty()) return;
  const llvm::DataLayout& layout = plan.function->getParent()->getDataLayout();
  const Liveness liveness(*plan.function, globals);
  std::uint64_t bytes = 0;
  for (Region& region : plan.regions) {
    region.live_ins = liveness.after(*region.begins_behind, *region.at);
    check(region, layout);
    bytes = std::max(bytes, region.live_ins.bytes(layout));
  }
  if (bytes == 0) return;
  llvm::BasicBlock& entry = plan.function->getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.getFirstInsertionPt());
  llvm::AllocaInst* buffer =
      builder.CreateAlloca(llvm::ArrayType::get(builder.getInt8Ty(), bytes), nullptr, "live_ins");
  buffer->setAlignment(llvm::Align(kSlotBytes));
  for (Region& region : plan.regions) store_live_ins(region, buffer, layout);
}

}  // namespace pawl::compiler::fase
