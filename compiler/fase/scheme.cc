#include "scheme.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace pawl::compiler::fase {
namespace {

constexpr int kConstructorPriority = 0;  // before files are opened

llvm::cl::opt<Scheme> chosen("pawl-fase-scheme",
                             llvm::cl::desc("How sections are made failure-atomic"),
                             llvm::cl::values(clEnumValN(Scheme::kIdo, "ido", "iDO"),
                                              clEnumValN(Scheme::kJustdo, "justdo", "JUSTDO"),
                                              clEnumValN(Scheme::kUndo, "undo", "Atlas")),
                             llvm::cl::init(Scheme::kIdo));

}  // namespace

Scheme scheme() { return chosen; }

void say_scheme(llvm::Module& module, RunTime& run_time) {
  // What says nothing is iDO's.
  if (scheme() == Scheme::kIdo) return;
  llvm::LLVMContext& context = module.getContext();
  auto* constructor = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), /*isVarArg=*/false),
      llvm::GlobalValue::InternalLinkage, "pawl_fase_say_scheme", module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", constructor));
  builder.CreateCall(run_time.use_scheme(),
                     {builder.getInt32(static_cast<std::uint32_t>(scheme()))});
  builder.CreateRetVoid();
  llvm::appendToGlobalCtors(module, constructor, kConstructorPriority);
}

}  // namespace pawl::compiler::fase
