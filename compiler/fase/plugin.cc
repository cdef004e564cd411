// The pass plugin of failure-atomic sections (pawl-clang -fpawl=ido): registration, and the order
// in which a module is gone through.
//
// It runs last of all optimisations, at -O0 too: so the regions are those of the code that will be
// executed, and what it adds are calls of functions that nobody knows, across which code generation
// moves no access to memory.
#include "checks.h"
#include "computed_gotos.h"
#include "externals.h"
#include "fase_verifier/verifier.h"
#include "faults.h"
#include "frames.h"
#include "hoisting.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "locals.h"
#include "lock_of_two.h"
#include "locks.h"
#include "moves.h"
#include "normal_form.h"
#include "notes.h"
#include "regions.h"
#include "remarks.h"
#include "resume_form.h"
#include "scheme.h"
#include "signal_handlers.h"
#include "tables.h"
#include "undo_stores.h"

namespace pawl::compiler::fase {
namespace {

constexpr llvm::StringLiteral kPassName = "pawl-fase";
constexpr llvm::StringLiteral kVerifierName = "pawl-fase-verify";
// On modules that have been through: a plugin that is loaded twice does it once.
constexpr llvm::StringLiteral kDoneFlag = "pawl-fase-done";

bool has_errors(const llvm::Module& module) {
  const llvm::DiagnosticHandler* handler = module.getContext().getDiagHandlerPtr();
  return handler != nullptr && handler->HasErrors;
}

// What was found out of the function before: it writes now what frames and notes keep, and in
// recovery need not return.
void forget_effects(llvm::Function& function) {
  for (const llvm::Attribute::AttrKind kind :
       {llvm::Attribute::Memory, llvm::Attribute::NoSync, llvm::Attribute::NoFree,
        llvm::Attribute::WillReturn, llvm::Attribute::NoCallback, llvm::Attribute::Speculatable}) {
    function.removeFnAttr(kind);
  }
}

// An error of the compiler itself must not become one of the program.
void check_form(const llvm::Function& function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!llvm::verifyFunction(function, &stream)) return;
  llvm::report_fatal_error(llvm::Twine("Pawl made a wrong function of ") + function.getName() +
                           ": " + text);
}

class FasePass : public llvm::PassInfoMixin<FasePass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    if (module.getModuleFlag(kDoneFlag) != nullptr) return llvm::PreservedAnalyses::all();
    module.addModuleFlag(llvm::Module::Warning, kDoneFlag, 1);
    auto& functions =
        analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    bring_into_normal_form(module, analyses);
    refuse_other_locks(module);
    if (scheme() == Scheme::kUndo) {
      log_undo(module, functions);
      return llvm::PreservedAnalyses::none();
    }
    prepare(module, functions);
    const Sections sections(module);
    std::vector<FunctionPlan> plans;
    for (llvm::Function& function : module) {
      if (!is_defined(function)) continue;
      hoist_reads(function, sections, functions);
      plans.push_back(plan_regions(function, sections, functions));
      tell_sections(function, sections);
    }
    RunTime run_time(module);
    Tables tables(module, run_time);
    const KeptGlobals globals(module, sections);
    Checks checks(sections, plans, globals);
    checks.report_errors();
    if (has_errors(module)) return llvm::PreservedAnalyses::none();
    const std::vector<llvm::Function*> handlers = find_signal_handlers(module, sections);
    instrument(plans, sections, checks, globals, run_time, tables, functions);
    tables.register_all(llvm::any_of(plans, [&](const FunctionPlan& plan) {
      return sections.locks(*plan.function).takes_any();
    }));
    say_scheme(module, run_time);
    say_what_is_compiled(module);
    for (FunctionPlan& plan : plans) simplify(*plan.function, functions);
    mark_signal_handlers(handlers, run_time);
    return llvm::PreservedAnalyses::none();
  }

  static bool isRequired() { return true; }

 private:
  // Nothing is executed again: no regions, and nothing that could not be in a section.
  static void log_undo(llvm::Module& module, llvm::FunctionAnalysisManager& functions) {
    if (has_errors(module)) return;
    const Sections sections(module);
    std::vector<std::pair<llvm::Function*, std::vector<NotedWrites>>> writes;
    for (llvm::Function& function : module) {
      if (!is_defined(function)) continue;
      writes.emplace_back(&function, find_writes({&function, {}}, sections));
    }
    RunTime run_time(module);
    say_scheme(module, run_time);
    for (auto& [function, of] : writes) {
      replace_locks(*function);
      emit_undo(of, run_time);
      // Nor is anything that recovery would have to store elsewhere.
      for (NotedWrites& noted : of) noted.is_inside = false;
      emit_notes(of, run_time);
      forget_effects(*function);
      check_form(*function);
      simplify(*function, functions);
    }
    mark_signal_handlers(find_signal_handlers(module, sections), run_time);
  }

  // What cannot be repeated as it is, and can be done otherwise.
  static void prepare(llvm::Module& module, llvm::FunctionAnalysisManager& functions) {
    const Sections sections(module);
    split_moves(module, sections, functions);
    for (llvm::Function& function : module) {
      if (!is_defined(function) || !sections.is_inside(function)) continue;
      copy_arguments(function);
      number_labels(function);
      functions.invalidate(function, llvm::PreservedAnalyses::none());
    }
  }

  static void instrument(std::vector<FunctionPlan>& plans, const Sections& sections,
                         const Checks& checks, const KeptGlobals& globals, RunTime& run_time,
                         Tables& tables, llvm::FunctionAnalysisManager& functions) {
    // All that is to be known of the functions is, before the first is changed.
    std::vector<std::vector<NotedWrites>> writes;
    std::vector<std::vector<Check>> checked;
    for (const FunctionPlan& plan : plans) {
      writes.push_back(find_writes(plan, sections));
      checked.push_back(checks.find(*plan.function));
    }
    for (std::size_t i = 0; i < plans.size(); ++i) {
      llvm::Function& function = *plans[i].function;
      // Through a pointer a section calls only what has a table.
      const bool has_table = !plans[i].regions.empty() || !checked[i].empty() ||
                             sections.is_called_from_elsewhere(function);
      llvm::Constant* table = has_table ? tables.table(function) : nullptr;
      place_frames(plans[i], run_time, table);
      replace_locks(function);
      emit_notes(writes[i], run_time);
      emit_checks(std::move(checked[i]), run_time, tables);
      fill_frames(plans[i], globals);
      tell_regions(plans[i]);
      forget_effects(function);
      check_form(function);
      if (has_errors(*function.getParent())) continue;
      if (!has_table) continue;
      llvm::Function* resume = nullptr;
      if (!plans[i].regions.empty()) resume = make_resume_form(plans[i], globals);
      tables.fill(plans[i], resume);
      if (resume == nullptr) continue;
      check_form(*resume);
      simplify(*resume, functions);
    }
  }

  // Locks outside of sections, and releases that end one.
  static void replace_locks(llvm::Function& function) {
    std::vector<llvm::CallBase*> calls;
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        if (lock_function(instruction) != nullptr) {
          calls.push_back(llvm::cast<llvm::CallBase>(&instruction));
        }
      }
    }
    for (llvm::CallBase* call : calls) replace_lock_call(*call, std::nullopt);
  }

  // What guards of accesses to one object compute alike is computed once.
  static void simplify(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    if (function.hasOptNone()) return;
    llvm::EarlyCSEPass().run(function, analyses);
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    llvm::SimplifyCFGPass().run(function, analyses);
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
  }
};

void add_to_pipeline(llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
  passes.addPass(FasePass());
  // Where stores are undone there are no regions to look at.
  if (scheme() == Scheme::kUndo || is_unverified()) return;
  passes.addPass(fase_verifier::VerifierPass());
}

void register_callbacks(llvm::PassBuilder& builder) {
  builder.registerPipelineStartEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
        passes.addPass(LockOfTwoPass());
      });
  builder.registerOptimizerLastEPCallback(add_to_pipeline);
  // For opt -passes=pawl-fase.
  builder.registerPipelineParsingCallback([](llvm::StringRef name, llvm::ModulePassManager& passes,
                                             llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
    if (name == kPassName) passes.addPass(FasePass());
    if (name == kPassName || name == kVerifierName) passes.addPass(fase_verifier::VerifierPass());
    return name == kPassName || name == kVerifierName;
  });
}

}  // namespace
}  // namespace pawl::compiler::fase

// What clang looks for.
extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "pawl-fase", "1", pawl::compiler::fase::register_callbacks};
}
