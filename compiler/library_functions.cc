#include "library_functions.h"

#include "known_calls.h"
#include "library_prototypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler {
namespace {

constexpr llvm::StringLiteral kWrapperPrefix = "pawl_stored_";

// The run-time has the same list.
const llvm::StringSet<>& wrapped_functions() {
  static const llvm::StringSet<> names = {
#define PAWL_STORE_FUNCTION(name) #name,
#include "track/store_functions.def"
#undef PAWL_STORE_FUNCTION
  };
  return names;
}

llvm::Function* wrapper_of(llvm::Function& function, llvm::StringRef name) {
  llvm::FunctionCallee wrapper = function.getParent()->getOrInsertFunction(
      (kWrapperPrefix + name).str(), function.getFunctionType());
  auto* made = llvm::dyn_cast<llvm::Function>(wrapper.getCallee());
  if (made == nullptr || made->getFunctionType() != function.getFunctionType()) return nullptr;
  made->setAttributes(function.getAttributes());
  made->setCallingConv(function.getCallingConv());
  // The wrapper also writes what it remembers.
  made->removeFnAttr(llvm::Attribute::Memory);
  return made;
}

// The wrappers call the functions themselves; and what is_known_call() knows is marked in place.
bool is_to_be_replaced(llvm::Use& use) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(use.getUser());
  if (instruction == nullptr) return true;
  if (instruction->getFunction()->getName().starts_with(kWrapperPrefix)) return false;
  const auto* call = llvm::dyn_cast<llvm::CallBase>(instruction);
  return call == nullptr || !call->isCallee(&use) || call->isMustTailCall() ||
         !is_known_call(*call);
}

}  // namespace

bool replace_library_functions(llvm::Module& module) {
  bool changed = false;
  std::vector<llvm::Function*> found;
  for (llvm::Function& function : module) {
    llvm::StringRef name = function.getName();
    name.consume_front("\01");
    if (function.isDeclarationForLinker() && wrapped_functions().contains(name) &&
        is_declared_as_library(function, name)) {
      found.push_back(&function);
    }
  }
  for (llvm::Function* function : found) {
    llvm::StringRef name = function->getName();
    name.consume_front("\01");
    if (llvm::none_of(function->uses(), is_to_be_replaced)) continue;
    llvm::Function* wrapper = wrapper_of(*function, name);
    if (wrapper == nullptr) continue;
    function->replaceUsesWithIf(wrapper, is_to_be_replaced);
    changed = true;
  }
  return changed;
}

}  // namespace pawl::compiler
