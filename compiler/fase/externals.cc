#include "externals.h"

#include <vector>

#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "sections.h"

namespace pawl::compiler::fase {
namespace {

std::string name_when_compiled(const llvm::Function& function) {
  llvm::StringRef name = function.getName();
  name.consume_front("\01");
  return ("__pawl_fase_" + name).str();
}

llvm::GlobalValue* declared(llvm::Function& function, llvm::GlobalValue::LinkageTypes linkage) {
  llvm::Module& module = *function.getParent();
  const std::string name = name_when_compiled(function);
  if (llvm::GlobalValue* known = module.getNamedValue(name)) return known;
  return new llvm::GlobalVariable(module, llvm::Type::getInt8Ty(module.getContext()),
                                  /*isConstant=*/true, linkage, nullptr, name);
}

}  // namespace

void say_what_is_compiled(llvm::Module& module) {
  std::vector<llvm::Function*> found;
  for (llvm::Function& function : module) {
    if (is_defined(function) && !function.hasLocalLinkage() && function.getName() != "main") {
      found.push_back(&function);
    }
  }
  for (llvm::Function* function : found) {
    const std::string name = name_when_compiled(*function);
    if (module.getNamedValue(name) != nullptr) continue;
    auto* alias = llvm::GlobalAlias::create(name, function);
    alias->setLinkage(function->getLinkage());
    alias->setVisibility(function->getVisibility());
  }
}

void need_compiled(llvm::Function& function) {
  llvm::Module& module = *function.getParent();
  const std::string name = "pawl_fase_needs." + function.getName().str();
  if (module.getNamedValue(name) != nullptr) return;
  llvm::GlobalValue* compiled = declared(function, llvm::GlobalValue::ExternalLinkage);
  if (auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(compiled)) {
    variable->setLinkage(llvm::GlobalValue::ExternalLinkage);
  }
  auto* need = new llvm::GlobalVariable(module, compiled->getType(), /*isConstant=*/true,
                                        llvm::GlobalValue::InternalLinkage, compiled, name);
  need->setSection(".pawl.fase_needs");
  llvm::appendToCompilerUsed(module, {need});
}

llvm::Constant* compiled_if_there(llvm::Function& function) {
  return declared(function, llvm::GlobalValue::ExternalWeakLinkage);
}

}  // namespace pawl::compiler::fase
