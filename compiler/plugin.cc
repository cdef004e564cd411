// The pass plugin: registration, and what is done to a module.
//
// It runs last of all optimisations (at -O0, too), so that it sees the stores that will be
// executed. With -flto it runs before bitcode is written; what the linker optimises keeps the
// marks, which are calls of a function that it does not know.
#include "coalesce.h"
#include "library_functions.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "loop_ranges.h"
#include "marks.h"
#include "store_sites.h"

namespace pawl::compiler {
namespace {

constexpr llvm::StringLiteral kPassName = "pawl-stores";
// On functions that have their marks: a plugin that is loaded twice marks once.
constexpr llvm::StringLiteral kMarkedAttribute = "pawl-marked";
constexpr unsigned kAddressBits = 64;

// Not so: code for processors with shorter pointers, and for those that have long ones and no
// libpawl: BPF's machine in the kernel, graphics cards.
bool may_have_mappings(const llvm::Module& module) {
  const llvm::Triple triple(module.getTargetTriple());
  return module.getDataLayout().getPointerSizeInBits() == kAddressBits &&
         (triple.isX86() || triple.isAArch64());
}

bool is_to_be_marked(const llvm::Function& function) {
  return !function.isDeclarationForLinker() && !function.hasFnAttribute(llvm::Attribute::Naked) &&
         !function.hasFnAttribute(kMarkedAttribute) &&
         !function.getName().starts_with("pawl_stored");
}

// What was found out of the function before: it writes now what marks remember, too.
void forget_effects(llvm::Function& function) {
  if (function.onlyReadsMemory()) return;
  function.removeFnAttr(llvm::Attribute::Memory);
  function.removeFnAttr(llvm::Attribute::NoSync);
}

// True when it got any.
bool mark_function(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  std::vector<StoreSite> sites = find_store_sites(function);
  function.addFnAttr(kMarkedAttribute);
  if (sites.empty()) return false;
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  LoopRanges loop_ranges(analyses.getResult<llvm::LoopAnalysis>(function),
                         analyses.getResult<llvm::DominatorTreeAnalysis>(function), evolution,
                         analyses.getResult<llvm::AssumptionAnalysis>(function));
  std::vector<Mark> marks;
  loop_ranges.take(sites, marks);
  mark_sites(function, sites, evolution, marks);
  emit_marks(std::move(marks));
  loop_ranges.sink_into_marks();
  return true;
}

// What marks of stores into one object compute alike is computed once.
void share_checks(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  analyses.invalidate(function, llvm::PreservedAnalyses::none());
  if (!function.hasOptNone()) llvm::EarlyCSEPass().run(function, analyses);
}

class StoresPass : public llvm::PassInfoMixin<StoresPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    if (!may_have_mappings(module)) return llvm::PreservedAnalyses::all();
    replace_library_functions(module);
    auto& functions =
        analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    for (llvm::Function& function : module) {
      if (!is_to_be_marked(function)) continue;
      const bool has_marks = mark_function(function, functions);
      forget_effects(function);
      if (has_marks) share_checks(function, functions);
    }
    return llvm::PreservedAnalyses::none();
  }

  // At -O0 as well, and in functions that are not to be optimised.
  static bool isRequired() { return true; }
};

void add_to_pipeline(llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
  passes.addPass(StoresPass());
}

void register_callbacks(llvm::PassBuilder& builder) {
  builder.registerOptimizerLastEPCallback(add_to_pipeline);
  // For opt -passes=pawl-stores.
  builder.registerPipelineParsingCallback([](llvm::StringRef name, llvm::ModulePassManager& passes,
                                             llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
    if (name != kPassName) return false;
    passes.addPass(StoresPass());
    return true;
  });
}

}  // namespace
}  // namespace pawl::compiler

// What clang looks for.
extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "pawl", "1", pawl::compiler::register_callbacks};
}
