#include "computed_gotos.h"

#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler::fase {
namespace {

using Numbers = llvm::DenseMap<const llvm::BasicBlock*, llvm::ConstantInt*>;

// From 1 on: a label is no null pointer.
Numbers number_blocks(llvm::Function& function) {
  Numbers numbers;
  auto* type = llvm::Type::getInt64Ty(function.getContext());
  for (llvm::BasicBlock& block : function) {
    llvm::BlockAddress* address = llvm::BlockAddress::lookup(&block);
    if (address == nullptr) continue;
    auto* number = llvm::ConstantInt::get(type, numbers.size() + 1);
    numbers[&block] = number;
    address->replaceAllUsesWith(llvm::ConstantExpr::getIntToPtr(number, address->getType()));
    address->destroyConstant();
  }
  return numbers;
}

void switch_by_number(llvm::IndirectBrInst& jump, const Numbers& numbers) {
  llvm::BasicBlock* from = jump.getParent();
  auto* nowhere = llvm::BasicBlock::Create(jump.getContext(), "", jump.getFunction());
  new llvm::UnreachableInst(jump.getContext(), nowhere);
  llvm::IRBuilder<> builder(&jump);
  llvm::Value* number = builder.CreatePtrToInt(jump.getAddress(), builder.getInt64Ty());
  llvm::SwitchInst* choice = builder.CreateSwitch(number, nowhere, jump.getNumDestinations());
  llvm::SmallPtrSet<const llvm::BasicBlock*, 8> known;
  for (llvm::BasicBlock* to : jump.successors()) {
    llvm::ConstantInt* of_label = numbers.lookup(to);
    if (of_label != nullptr && known.insert(to).second) {
      choice->addCase(of_label, to);
    } else {
      to->removePredecessor(from, /*KeepOneInputPHIs=*/true);
    }
  }
  jump.eraseFromParent();
}

}  // namespace

void number_labels(llvm::Function& function) {
  std::vector<llvm::IndirectBrInst*> jumps;
  for (llvm::BasicBlock& block : function) {
    if (auto* jump = llvm::dyn_cast<llvm::IndirectBrInst>(block.getTerminator())) {
      jumps.push_back(jump);
    }
  }
  if (jumps.empty()) return;
  const Numbers numbers = number_blocks(function);
  for (llvm::IndirectBrInst* jump : jumps) switch_by_number(*jump, numbers);
}

}  // namespace pawl::compiler::fase
