#include "lock_of_two.h"

#include <optional>
#include <string>

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler::fase {
namespace {

// What the standard asks of what can be locked.
struct Members {
  llvm::Function* lock;
  llvm::Function* try_lock;
  llvm::Function* unlock;
};

llvm::Function* find(llvm::Module& module, const std::string& demangled) {
  for (llvm::Function& function : module) {
    if (llvm::demangle(function.getName()) != demangled) continue;
    return function.arg_size() == 1 ? &function : nullptr;
  }
  return nullptr;
}

// When the function is std::lock of two of one type: that type's.
std::optional<Members> members_of(llvm::Function& function) {
  if (!function.getName().starts_with("_ZSt4lockI") || function.arg_size() != 2)
    return std::nullopt;
  const std::string name = llvm::demangle(function.getName());
  const std::size_t comma = name.rfind("&, ");
  if (comma == std::string::npos) return std::nullopt;
  const std::string type = name.substr(comma + 3, name.size() - comma - 5);
  if (name != "void std::lock<" + type + ", " + type + ">(" + type + "&, " + type + "&)") {
    return std::nullopt;
  }
  llvm::Module& module = *function.getParent();
  const Members found{.lock = find(module, type + "::lock()"),
                      .try_lock = find(module, type + "::try_lock()"),
                      .unlock = find(module, type + "::unlock()")};
  const bool are_there = found.lock != nullptr && found.try_lock != nullptr &&
                         found.unlock != nullptr && found.try_lock->getReturnType()->isIntegerTy(1);
  return are_there ? std::optional(found) : std::nullopt;
}

llvm::Constant* personality_of(llvm::Function& function) {
  if (function.hasPersonalityFn()) return function.getPersonalityFn();
  llvm::Module& module = *function.getParent();
  auto* result = llvm::Type::getInt32Ty(module.getContext());
  return llvm::cast<llvm::Constant>(
      module.getOrInsertFunction("__gxx_personality_v0", llvm::FunctionType::get(result, true))
          .getCallee());
}

void call_in_turns(llvm::Function& function, const Members& members) {
  const llvm::GlobalValue::LinkageTypes linkage = function.getLinkage();
  llvm::Comdat* comdat = function.getComdat();
  llvm::DISubprogram* subprogram = function.getSubprogram();
  llvm::Constant* personality = personality_of(function);
  function.deleteBody();
  function.setLinkage(linkage);
  function.setComdat(comdat);
  function.setSubprogram(subprogram);
  function.setPersonalityFn(personality);
  // What is locked may be guards of the caller, which have to be seen.
  if (!function.hasFnAttribute(llvm::Attribute::NoInline)) {
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  llvm::LLVMContext& context = function.getContext();
  auto* first = llvm::BasicBlock::Create(context, "first", &function);
  auto* second = llvm::BasicBlock::Create(context, "second", &function);
  auto* both = llvm::BasicBlock::Create(context, "both", &function);
  llvm::IRBuilder<> builder(first);
  if (subprogram != nullptr) {
    builder.SetCurrentDebugLocation(
        llvm::DILocation::get(context, subprogram->getLine(), 0, subprogram));
  }
  llvm::Type* caught = llvm::StructType::get(builder.getPtrTy(), builder.getInt32Ty());
  const auto take = [&](llvm::BasicBlock* block, unsigned one, llvm::BasicBlock* else_next) {
    auto* tried = llvm::BasicBlock::Create(context, "tried", &function);
    auto* busy = llvm::BasicBlock::Create(context, "busy", &function);
    auto* thrown = llvm::BasicBlock::Create(context, "thrown", &function);
    llvm::Value* taken = function.getArg(one);
    builder.SetInsertPoint(block);
    builder.CreateCall(members.lock, {taken});
    llvm::Value* has_both =
        builder.CreateInvoke(members.try_lock, tried, thrown, {function.getArg(1 - one)});
    builder.SetInsertPoint(tried);
    builder.CreateCondBr(has_both, both, busy);
    builder.SetInsertPoint(busy);
    builder.CreateCall(members.unlock, {taken});
    builder.CreateBr(else_next);
    builder.SetInsertPoint(thrown);
    llvm::LandingPadInst* exception = builder.CreateLandingPad(caught, 0);
    exception->setCleanup(true);
    builder.CreateCall(members.unlock, {taken});
    builder.CreateResume(exception);
  };
  // The first has to be entered from elsewhere than from a turn.
  auto* entry = llvm::BasicBlock::Create(context, "entry", &function, first);
  take(first, 0, second);
  take(second, 1, first);
  builder.SetInsertPoint(entry);
  builder.CreateBr(first);
  builder.SetInsertPoint(both);
  builder.CreateRetVoid();
}

}  // namespace

llvm::PreservedAnalyses LockOfTwoPass::run(llvm::Module& module, llvm::ModuleAnalysisManager&) {
  bool changed = false;
  for (llvm::Function& function : module) {
    const std::optional<Members> members =
        function.isDeclaration() ? std::nullopt : members_of(function);
    if (members) call_in_turns(function, *members);
    changed |= members.has_value();
  }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace pawl::compiler::fase
