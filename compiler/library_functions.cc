#include "library_functions.h"

#include "known_calls.h"
#include "library_prototypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace pawl::compiler {
namespace {

constexpr llvm::StringLiteral kWrapperPrefix = "pawl_stored_";
// Functions that a module calls by their wrappers.
constexpr llvm::StringLiteral kWrappedHere = "pawl.wrapped";

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
  // Its type, by which -fsanitize=cfi-icall knows whom a pointer may call.
  made->copyMetadata(&function, 0);
  // The wrapper also writes what it remembers.
  made->removeFnAttr(llvm::Attribute::Memory);
  return made;
}

bool is_in_list_of_wrapped(const llvm::User* user) {
  return llvm::isa<llvm::ConstantArray>(user) && !user->use_empty() &&
         llvm::all_of(user->users(), [](const llvm::User* list) {
           return llvm::isa<llvm::GlobalVariable>(list) &&
                  list->getName().starts_with(kWrappedHere);
         });
}

// The wrappers call the functions themselves; and what is_known_call() knows is marked in place.
bool is_to_be_replaced(llvm::Use& use) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(use.getUser());
  if (instruction == nullptr) return !is_in_list_of_wrapped(use.getUser());
  if (instruction->getFunction()->getName().starts_with(kWrapperPrefix)) return false;
  // "Is there such a function?" Its wrapper always is.
  if (llvm::isa<llvm::ICmpInst>(instruction) &&
      llvm::cast<llvm::Function>(use.get())->hasExternalWeakLinkage()) {
    return false;
  }
  const auto* call = llvm::dyn_cast<llvm::CallBase>(instruction);
  return call == nullptr || !call->isCallee(&use) || call->isMustTailCall() ||
         !is_known_call(*call);
}

// What the program takes out of an archive, or of a library that is linked only as needed, is asked
// for by its name: strlcpy() of its own, which the wrapper will call. Linkers leave the section
// out.
void ask_for(llvm::Module& module, const std::vector<llvm::Constant*>& functions) {
  if (functions.empty() || !llvm::Triple(module.getTargetTriple()).isOSBinFormatELF()) return;
  auto* type = llvm::ArrayType::get(functions[0]->getType(), functions.size());
  auto* list =
      new llvm::GlobalVariable(module, type, /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                               llvm::ConstantArray::get(type, functions), kWrappedHere);
  list->setSection(".pawl.wrapped");
  list->setMetadata(llvm::LLVMContext::MD_exclude, llvm::MDNode::get(module.getContext(), {}));
  llvm::appendToCompilerUsed(module, {list});
}

// A function that the program itself defines, by the name of a library's: with marks of its own.
// The wrapper cannot call it where other libraries do not see it, nor with arguments that it can
// only hand on as a va_list. Then it takes the wrapper's place.
bool is_out_of_reach(const llvm::Function& function, llvm::StringRef name) {
  if (function.isDeclarationForLinker() || function.hasLocalLinkage() || function.hasComdat()) {
    return false;
  }
  const bool is_handed_on = name == "ioctl" || name.starts_with("fcntl");
  return !function.hasDefaultVisibility() || (function.isVarArg() && !is_handed_on);
}

void put_in_place_of_wrapper(llvm::Function& function, llvm::StringRef name) {
  const std::string wrapper = (kWrapperPrefix + name).str();
  if (function.getParent()->getNamedValue(wrapper) != nullptr) return;
  auto* alias = llvm::GlobalAlias::create(wrapper, &function);
  alias->setLinkage(function.getLinkage());
  alias->setVisibility(function.getVisibility());
}

}  // namespace

bool replace_library_functions(llvm::Module& module) {
  bool changed = false;
  std::vector<llvm::Function*> found;
  std::vector<llvm::Constant*> wrapped;
  for (llvm::Function& function : module) {
    llvm::StringRef name = function.getName();
    name.consume_front("\01");
    if (!wrapped_functions().contains(name) || !is_declared_as_library(function, name)) continue;
    if (function.isDeclarationForLinker()) {
      found.push_back(&function);
    } else if (is_out_of_reach(function, name)) {
      put_in_place_of_wrapper(function, name);
      changed = true;
    }
  }
  for (llvm::Function* function : found) {
    llvm::StringRef name = function->getName();
    name.consume_front("\01");
    if (llvm::none_of(function->uses(), is_to_be_replaced)) continue;
    llvm::Function* wrapper = wrapper_of(*function, name);
    if (wrapper == nullptr) continue;
    function->replaceUsesWithIf(wrapper, is_to_be_replaced);
    if (!function->hasExternalWeakLinkage()) wrapped.push_back(function);
    changed = true;
  }
  ask_for(module, wrapped);
  return changed;
}

}  // namespace pawl::compiler
