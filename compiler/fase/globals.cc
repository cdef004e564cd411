#include "globals.h"

#include "accesses.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler::fase {
namespace {

constexpr std::uint64_t kScalarBytesMax = 16;

}  // namespace

KeptGlobals::KeptGlobals(llvm::Module& module, const Sections& sections) {
  for (llvm::Function& function : module) {
    if (!is_defined(function) || !sections.is_inside(function)) continue;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      const std::optional<Write> write = write_of(instruction);
      if (!write || sections.before(instruction) == Inside::kNever) continue;
      llvm::SmallVector<const llvm::Value*, 4> objects;
      llvm::getUnderlyingObjects(write->pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
      for (const llvm::Value* object : objects) {
        if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object)) {
          changed_.insert(variable);
        }
      }
    }
  }
}

std::optional<GlobalValueRead> KeptGlobals::read_of(const llvm::Instruction& instruction) const {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
  if (load == nullptr || !load->isSimple()) return std::nullopt;
  auto* pointer =
      const_cast<llvm::Constant*>(llvm::dyn_cast<llvm::Constant>(load->getPointerOperand()));
  if (pointer == nullptr) return std::nullopt;
  const auto* variable =
      llvm::dyn_cast<llvm::GlobalVariable>(pointer->stripInBoundsConstantOffsets());
  if (variable == nullptr || variable->isConstant() || variable->isThreadLocal() ||
      changed_.contains(variable)) {
    return std::nullopt;
  }
  const std::uint64_t bytes =
      instruction.getModule()->getDataLayout().getTypeStoreSize(load->getType()).getKnownMinValue();
  if (bytes > kScalarBytesMax) return std::nullopt;
  return GlobalValueRead{pointer, load->getType()};
}

LiveGlobals::LiveGlobals(const llvm::Function& function, const KeptGlobals& kept) : kept_(kept) {
  // To a fixed point: the sets only grow.
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::BasicBlock* block : llvm::post_order(&function)) {
      Set read = read_at_end_[block];
      for (const llvm::Instruction& instruction : *block) {
        if (const auto found = kept.read_of(instruction)) read.insert(*found);
      }
      for (const llvm::BasicBlock* before : llvm::predecessors(block)) {
        Set& known = read_at_end_[before];
        const std::size_t size = known.size();
        known.insert(read.begin(), read.end());
        changed |= known.size() != size;
      }
    }
  }
}

std::vector<GlobalValueRead> LiveGlobals::after(const llvm::Instruction& instruction) const {
  const auto at_end = read_at_end_.find(instruction.getParent());
  Set read = at_end == read_at_end_.end() ? Set() : at_end->second;
  for (const llvm::Instruction* later = instruction.getNextNode(); later != nullptr;
       later = later->getNextNode()) {
    if (const auto found = kept_.read_of(*later)) read.insert(*found);
  }
  return {read.begin(), read.end()};
}

}  // namespace pawl::compiler::fase
