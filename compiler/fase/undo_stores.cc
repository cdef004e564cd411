#include "undo_stores.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "window.h"

namespace pawl::compiler::fase {
namespace {

// How many bytes will be written, as far as that can be said before.
llvm::Value* bytes_of(llvm::IRBuilder<>& builder, const NotedWrites::Part& part) {
  if (part.write.length != nullptr) {
    return builder.CreateZExtOrTrunc(part.write.length, builder.getInt64Ty());
  }
  return builder.getInt64(part.write.bytes);
}

void emit(const NotedWrites::Part& part, RunTime& run_time) {
  llvm::Value* pointer = part.write.pointer;
  if (pointer->getType()->getPointerAddressSpace() != 0) return;
  llvm::Instruction* before = part.instruction;
  if (part.write.provenance == Provenance::kUnknown) {
    llvm::IRBuilder<> builder(before);
    before = llvm::SplitBlockAndInsertIfThen(is_in_window(builder, pointer), before,
                                             /*Unreachable=*/false);
  }
  llvm::IRBuilder<> builder(before);
  builder.SetCurrentDebugLocation(part.instruction->getDebugLoc());
  builder.CreateCall(run_time.undo(), {pointer, bytes_of(builder, part)});
}

}  // namespace

void emit_undo(const std::vector<NotedWrites>& writes, RunTime& run_time) {
  for (const NotedWrites& noted : writes) {
    if (!noted.is_inside) continue;
    // Each by itself, also of several that share a note: what lies between them may be another
    // thread's, and must not be put back.
    for (const NotedWrites::Part& part : noted.parts) {
      if (part.write.provenance != Provenance::kVolatile) emit(part, run_time);
    }
  }
}

}  // namespace pawl::compiler::fase
