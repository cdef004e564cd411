#include "hoisting.h"

#include "accesses.h"
#include "callees.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler::fase {
namespace {

// Instructions that are looked at above a load.
constexpr unsigned kStepsMax = 400;

class Block {
 public:
  Block(llvm::BasicBlock& block, const Sections& sections, llvm::AAResults& aliases,
        llvm::DominatorTree& dominators)
      : block_(block), sections_(sections), aliases_(aliases), dominators_(dominators) {}

  void run() {
    std::vector<llvm::LoadInst*> loads;
    bool has_write = false;
    for (llvm::Instruction& instruction : block_) {
      if (sections_.before(instruction) == Inside::kNever) continue;
      has_write |= is_write(instruction);
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load != nullptr && load->isSimple() && has_write && may_read(*load))
        loads.push_back(load);
    }
    for (llvm::LoadInst* load : loads) {
      if (is_written_later(*load)) hoist(*load);
    }
  }

 private:
  static bool is_write(llvm::Instruction& instruction) {
    const std::optional<Write> write = write_of(instruction);
    return write && write->provenance != Provenance::kVolatile;
  }

  bool is_written_later(llvm::LoadInst& load) {
    llvm::EarliestEscapeInfo escapes(dominators_);
    llvm::BatchAAResults aliases(aliases_, &escapes);
    const llvm::MemoryLocation location = llvm::MemoryLocation::get(&load);
    for (llvm::Instruction* later = load.getNextNode(); later != nullptr;
         later = later->getNextNode()) {
      if (sections_.ends_region(*later)) return false;
      if (is_write(*later) && llvm::isModSet(aliases.getModRefInfo(later, location))) return true;
    }
    return false;
  }

  // What a load can be moved across, but for its own operands and what writes its memory.
  bool can_be_crossed(llvm::Instruction& instruction) const {
    if (sections_.ends_region(instruction) || llvm::isa<llvm::PHINode>(instruction)) return false;
    if (instruction.isAtomic() || instruction.isVolatile()) return false;
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
      switch (callee_of(*call)) {
        case Callee::kNothing:
        case Callee::kReads:
        case Callee::kHeap:
        case Callee::kWrites:
          return true;
        default:
          return false;
      }
    }
    return llvm::isGuaranteedToTransferExecutionToSuccessor(&instruction);
  }

  void hoist(llvm::LoadInst& load) {
    llvm::EarliestEscapeInfo escapes(dominators_);
    llvm::BatchAAResults aliases(aliases_, &escapes);
    const llvm::MemoryLocation location = llvm::MemoryLocation::get(&load);
    llvm::SmallPtrSet<const llvm::Value*, 8> needed;
    std::vector<llvm::Instruction*> to_move;  // from the last to the first
    const auto take = [&](llvm::Instruction& instruction) {
      to_move.push_back(&instruction);
      for (llvm::Value* operand : instruction.operands()) needed.insert(operand);
    };
    take(load);
    llvm::Instruction* place = nullptr;
    std::size_t moved_there = 0;
    unsigned steps = 0;
    for (llvm::Instruction* above = load.getPrevNode(); above != nullptr && steps < kStepsMax;
         above = above->getPrevNode(), ++steps) {
      if (needed.contains(above)) {
        if (above->mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(above)) break;
        take(*above);
        continue;
      }
      if (!can_be_crossed(*above)) break;
      if (above->mayWriteToMemory() && llvm::isModSet(aliases.getModRefInfo(above, location)))
        break;
      if (!is_write(*above)) continue;
      place = above;
      moved_there = to_move.size();
    }
    if (place == nullptr) return;
    for (std::size_t i = moved_there; i-- > 0;) to_move[i]->moveBefore(place);
  }

  llvm::BasicBlock& block_;
  const Sections& sections_;
  llvm::AAResults& aliases_;
  llvm::DominatorTree& dominators_;
};

}  // namespace

void hoist_reads(llvm::Function& function, const Sections& sections,
                 llvm::FunctionAnalysisManager& analyses) {
  const bool is_outside =
      sections.entry(function) == Inside::kNever && !sections.locks(function).takes_any();
  if (is_outside) return;
  auto& aliases = analyses.getResult<llvm::AAManager>(function);
  auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  for (llvm::BasicBlock& block : function) Block(block, sections, aliases, dominators).run();
}

}  // namespace pawl::compiler::fase
