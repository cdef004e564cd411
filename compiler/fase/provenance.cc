#include "provenance.h"

#include "callees.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Argument.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

namespace pawl::compiler::fase {
namespace {

Provenance of_object(const llvm::Value* object) {
  if (llvm::isa<llvm::AllocaInst>(object)) return Provenance::kVolatile;
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) {
    return argument->hasByValAttr() ? Provenance::kVolatile : Provenance::kUnknown;
  }
  if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object)) {
    return variable->isConstant() ? Provenance::kConstant : Provenance::kVolatile;
  }
  if (llvm::isa<llvm::Function>(object)) return Provenance::kConstant;
  if (llvm::isa<llvm::GlobalValue>(object)) return Provenance::kVolatile;
  // An access there is undefined.
  if (llvm::isa<llvm::UndefValue, llvm::ConstantPointerNull>(object)) return Provenance::kConstant;
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(object)) {
    if (returns_persistent_memory(*call)) return Provenance::kPersistent;
    const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call);
    if (intrinsic != nullptr &&
        intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address) {
      return Provenance::kVolatile;
    }
  }
  return Provenance::kUnknown;
}

}  // namespace

Provenance provenance(const llvm::Value* pointer) {
  if (!pointer->getType()->isPointerTy()) return Provenance::kUnknown;
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  if (objects.empty()) return Provenance::kUnknown;
  const Provenance first = of_object(objects.front());
  const bool are_alike =
      llvm::all_of(objects, [&](const llvm::Value* object) { return of_object(object) == first; });
  return are_alike ? first : Provenance::kUnknown;
}

bool is_local_variable(const llvm::Value* pointer) {
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return llvm::any_of(objects, [](const llvm::Value* object) {
    const auto* argument = llvm::dyn_cast<llvm::Argument>(object);
    return llvm::isa<llvm::AllocaInst>(object) || (argument != nullptr && argument->hasByValAttr());
  });
}

}  // namespace pawl::compiler::fase
