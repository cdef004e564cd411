#include "undo_stores.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace pawl::compiler::fase {
namespace {

// How many bytes will be written, as far as that can be said before.
llvm::Value* bytes_of(llvm::IRBuilder<>& builder, const NotedWrite& noted) {
  if (noted.write.length != nullptr) {
    return builder.CreateZExtOrTrunc(noted.write.length, builder.getInt64Ty());
  }
  if (!noted.write.is_string) return builder.getInt64(noted.write.bytes);
  // As long as the string that will be copied, which is the argument behind the target.
  llvm::FunctionCallee length = noted.instruction->getModule()->getOrInsertFunction(
      "strlen", builder.getInt64Ty(), builder.getPtrTy());
  llvm::Value* source = llvm::cast<llvm::CallBase>(noted.instruction)->getArgOperand(1);
  return builder.CreateAdd(builder.CreateCall(length, {source}), builder.getInt64(1));
}

void emit(const NotedWrite& noted, RunTime& run_time) {
  llvm::Value* pointer = noted.write.pointer;
  if (pointer->getType()->getPointerAddressSpace() != 0) return;
  llvm::Instruction* before = noted.instruction;
  if (noted.write.provenance == Provenance::kUnknown) {
    llvm::IRBuilder<> builder(before);
    before = llvm::SplitBlockAndInsertIfThen(is_in_window(builder, pointer), before,
                                             /*Unreachable=*/false);
  }
  llvm::IRBuilder<> builder(before);
  builder.SetCurrentDebugLocation(noted.instruction->getDebugLoc());
  builder.CreateCall(run_time.undo(), {pointer, bytes_of(builder, noted)});
}

}  // namespace

void emit_undo(const std::vector<NotedWrite>& writes, RunTime& run_time) {
  for (const NotedWrite& noted : writes) {
    if (!noted.is_inside || noted.write.provenance == Provenance::kVolatile) continue;
    emit(noted, run_time);
  }
}

}  // namespace pawl::compiler::fase
