#include "window.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "run_time_calls.h"

namespace pawl::compiler::fase {
namespace {

// The start of the object that the pointer leads into, as far as that is known: accesses to one
// object then ask the same.
llvm::Value* to_compare(llvm::Value* pointer, const llvm::DataLayout& layout) {
  llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  llvm::Value* base =
      pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/false);
  const bool is_usable = base->getType() == pointer->getType() && offset.isNonNegative();
  return is_usable ? base : pointer;
}

}  // namespace

llvm::Value* is_in_window(llvm::IRBuilderBase& builder, llvm::Value* pointer) {
  const llvm::DataLayout& layout = builder.GetInsertBlock()->getModule()->getDataLayout();
  llvm::Value* address = builder.CreatePtrToInt(to_compare(pointer, layout), builder.getInt64Ty());
  return builder.CreateICmpULT(builder.CreateSub(address, builder.getInt64(kWindow)),
                               builder.getInt64(kWindowBytes));
}

llvm::Value* object_of_address(llvm::Value* pointer) {
  while (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer)) {
    if (address->getPointerOperandType() != pointer->getType()) break;
    pointer = address->getPointerOperand();
  }
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  const bool is_one = objects.size() == 1 && objects.front()->getType() == pointer->getType();
  return is_one ? const_cast<llvm::Value*>(objects.front()) : pointer;
}

}  // namespace pawl::compiler::fase
