#include "verifier.h"

#include "function_scene.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "report.h"

namespace pawl::compiler::fase_verifier {
namespace {

bool has_errors(const llvm::Module& module) {
  const llvm::DiagnosticHandler* handler = module.getContext().getDiagHandlerPtr();
  return handler != nullptr && handler->HasErrors;
}

bool is_irreducible(llvm::Function& function, const llvm::LoopInfo& loops) {
  const llvm::ReversePostOrderTraversal<llvm::Function*> order(&function);
  return llvm::containsIrreducibleCFG<llvm::BasicBlock*>(order, loops);
}

}  // namespace

llvm::PreservedAnalyses VerifierPass::run(llvm::Module& module,
                                          llvm::ModuleAnalysisManager& analyses) {
  // What the program does wrong was said, and nothing was compiled.
  if (has_errors(module)) return llvm::PreservedAnalyses::all();
  auto& functions =
      analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  const ModuleFacts facts(module);
  Reports reports;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    Aliasing aliasing(functions.getResult<llvm::AAManager>(function));
    Budget budget;
    const FunctionScene scene{
        .function = function,
        .facts = facts,
        .aliasing = aliasing,
        .dominators = functions.getResult<llvm::DominatorTreeAnalysis>(function),
        .back_edges = facts.back_edges(function),
        .is_irreducible =
            is_irreducible(function, functions.getResult<llvm::LoopAnalysis>(function)),
        .budget = budget,
        .reports = reports};
    check_overwrites(scene);
    check_notes(scene);
    check_live_ins(scene);
    check_guards(scene);
    if (budget.is_spent()) {
      warn(function, "the function is too large for Pawl to verify its failure-atomic sections");
    }
  }
  return llvm::PreservedAnalyses::all();
}

}  // namespace pawl::compiler::fase_verifier
