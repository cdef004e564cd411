#include "scheme.h"

#include "llvm/IR/Constants.h"
#include "llvm/Support/CommandLine.h"

namespace pawl::compiler::fase {
namespace {

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
  auto* const word = llvm::Type::getInt32Ty(module.getContext());
  run_time.call_first("pawl_fase_say_scheme", run_time.use_scheme(),
                      {llvm::ConstantInt::get(word, static_cast<std::uint32_t>(scheme()))});
}

}  // namespace pawl::compiler::fase
