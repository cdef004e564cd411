#include "notes.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace pawl::compiler::fase {
namespace {

// The start of the object that the pointer leads into, as far as that is known: no object is partly
// in the window, and accesses to one object then ask the same.
llvm::Value* to_compare(llvm::Value* pointer, const llvm::DataLayout& layout) {
  llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  llvm::Value* base =
      pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/false);
  const bool is_usable = base->getType() == pointer->getType() && offset.isNonNegative();
  return is_usable ? base : pointer;
}

void set_pointer(const NotedWrite& noted, llvm::Value* pointer) {
  for (llvm::Use& operand : noted.instruction->operands()) {
    if (operand.get() == noted.write.pointer) {
      operand.set(pointer);
      return;  // the first of them is the target, in all that writes
    }
  }
}

class Notes {
 public:
  explicit Notes(RunTime& run_time) : run_time_(run_time) {}

  void emit(const NotedWrite& noted) {
    if (noted.write.pointer->getType()->getPointerAddressSpace() != 0) return;
    if (noted.write.provenance == Provenance::kVolatile) {
      // Variables of the stack are made anew in recovery.
      if (noted.is_inside && !is_local_variable(noted.write.pointer)) redirect(noted, nullptr);
      return;
    }
    if (noted.write.provenance == Provenance::kPersistent) {
      note(noted, noted.write.pointer, noted.instruction->getNextNode());
      return;
    }
    llvm::Value* pointer = noted.write.pointer;
    llvm::IRBuilder<> builder(noted.instruction);
    llvm::Value* in_window = is_in_window(builder, pointer);
    if (noted.is_inside) redirect(noted, in_window);
    llvm::Instruction* behind = noted.instruction->getNextNode();
    llvm::Instruction* noting = llvm::SplitBlockAndInsertIfThen(in_window, behind, false);
    note(noted, pointer, noting);
  }

 private:
  llvm::Value* length_of(llvm::IRBuilder<>& builder, const NotedWrite& noted,
                         llvm::Value* pointer) {
    if (noted.write.length != nullptr) {
      return builder.CreateZExtOrTrunc(noted.write.length, builder.getInt64Ty());
    }
    if (!noted.write.is_string) return builder.getInt64(noted.write.bytes);
    llvm::FunctionCallee length = noted.instruction->getModule()->getOrInsertFunction(
        "strlen", builder.getInt64Ty(), builder.getPtrTy());
    return builder.CreateAdd(builder.CreateCall(length, {pointer}), builder.getInt64(1));
  }

  void note(const NotedWrite& noted, llvm::Value* pointer, llvm::Instruction* before) {
    llvm::IRBuilder<> builder(before);
    builder.SetCurrentDebugLocation(noted.instruction->getDebugLoc());
    builder.CreateCall(run_time_.stored(), {pointer, length_of(builder, noted, pointer)});
  }

  // In recovery, what is stored into volatile memory goes elsewhere.  `in_window` is null where it
  // certainly is volatile.
  void redirect(const NotedWrite& noted, llvm::Value* in_window) {
    llvm::Instruction* write = noted.instruction;
    llvm::Value* pointer = noted.write.pointer;
    if (in_window == nullptr) {
      llvm::IRBuilder<> builder(write);
      set_pointer(noted, target(builder, noted));
      return;
    }
    llvm::BasicBlock* hot = write->getParent();
    llvm::IRBuilder<> before(write);
    llvm::Instruction* cold = llvm::SplitBlockAndInsertIfThen(
        before.CreateNot(in_window), write, /*Unreachable=*/false,
        llvm::MDBuilder(write->getContext()).createUnlikelyBranchWeights());
    llvm::IRBuilder<> builder(cold);
    builder.SetCurrentDebugLocation(write->getDebugLoc());
    llvm::Value* elsewhere = target(builder, noted);
    llvm::IRBuilder<> joined(write->getParent(), write->getParent()->begin());
    llvm::PHINode* chosen = joined.CreatePHI(pointer->getType(), 2);
    chosen->addIncoming(pointer, hot);
    chosen->addIncoming(elsewhere, cold->getParent());
    set_pointer(noted, chosen);
  }

  llvm::Value* target(llvm::IRBuilder<>& builder, const NotedWrite& noted) {
    llvm::Value* bytes = noted.write.length != nullptr
                             ? builder.CreateZExtOrTrunc(noted.write.length, builder.getInt64Ty())
                             : builder.getInt64(noted.write.bytes);
    return builder.CreateCall(run_time_.volatile_target(), {noted.write.pointer, bytes});
  }

  RunTime& run_time_;
};

}  // namespace

llvm::Value* is_in_window(llvm::IRBuilderBase& builder, llvm::Value* pointer) {
  const llvm::DataLayout& layout = builder.GetInsertBlock()->getModule()->getDataLayout();
  llvm::Value* address = builder.CreatePtrToInt(to_compare(pointer, layout), builder.getInt64Ty());
  return builder.CreateICmpULT(builder.CreateSub(address, builder.getInt64(kWindow)),
                               builder.getInt64(kWindowBytes));
}

std::vector<NotedWrite> find_writes(llvm::Function& function, const Sections& sections) {
  std::vector<NotedWrite> found;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    const std::optional<Write> write = write_of(instruction);
    if (!write) continue;
    found.push_back({&instruction, *write, sections.before(instruction) != Inside::kNever});
  }
  return found;
}

void emit_notes(std::vector<NotedWrite> writes, RunTime& run_time) {
  Notes notes(run_time);
  // From the last to the first: each splits its block, and what is behind it is moved.
  for (const NotedWrite& noted : llvm::reverse(writes)) notes.emit(noted);
}

}  // namespace pawl::compiler::fase
