#include "skip.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Argument.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalValue.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

namespace pawl::compiler {
namespace {

bool is_own_memory(const llvm::Value* object) {
  if (llvm::isa<llvm::AllocaInst, llvm::GlobalValue>(object)) return true;
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) {
    return argument->hasByValAttr();  // a copy on the stack
  }
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(object)) {
    return intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address;
  }
  // Storing there is undefined; a pointer that may also be this is judged by what else it may be.
  return llvm::isa<llvm::UndefValue>(object);
}

}  // namespace

bool is_never_in_mapping(const llvm::Value* pointer) {
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return llvm::all_of(objects, is_own_memory);
}

}  // namespace pawl::compiler
