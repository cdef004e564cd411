#include "globals.h"

#include "accesses.h"
#include "callees.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

constexpr std::uint64_t kScalarBytesMax = 16;

// Uses of one variable that are looked at; of further ones nothing is known.
constexpr std::size_t kUsesOfVariableMax = 1000;

// Whether a section may write to the variable through its address, which it was given in a section:
// as the argument of a call that wants a result, say.
class AddressUses {
 public:
  explicit AddressUses(const Sections& sections) : sections_(sections) {}

  bool may_write_to(const llvm::GlobalVariable& variable) {
    addresses_.insert(&variable);
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_.size() > kUsesOfVariableMax) return true;
      for (const llvm::Use& use : addresses_[i]->uses()) {
        if (may_write(use)) return true;
      }
    }
    return false;
  }

 private:
  bool may_write(const llvm::Use& use) {
    const llvm::User* user = use.getUser();
    // What other variables begin with was not given to them in a section.
    if (llvm::isa<llvm::GlobalValue>(user)) return false;
    const bool is_another_address =
        llvm::isa<llvm::Constant, llvm::GetElementPtrInst, llvm::PHINode, llvm::SelectInst,
                  llvm::FreezeInst, llvm::AddrSpaceCastInst>(user);
    if (is_another_address) {
      addresses_.insert(user);
      return false;
    }
    const auto& instruction = *llvm::cast<llvm::Instruction>(user);
    const bool only_looks = llvm::isa<llvm::LoadInst, llvm::ICmpInst>(instruction);
    if (only_looks || sections_.before(instruction) == Inside::kNever) return false;
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call == nullptr || !call->isArgOperand(&use) || may_write(*call, use);
  }

  bool may_write(const llvm::CallBase& call, const llvm::Use& use) {
    const unsigned number = call.getArgOperandNo(&use);
    switch (callee_of(call)) {
      case Callee::kNothing:
      case Callee::kLock:
      case Callee::kHeap:
      case Callee::kReads:
        return false;
      case Callee::kWrites:  // seen as such
        return call.getType()->isPointerTy() && !call.use_empty();
      case Callee::kDefined:
        if (number >= call.getCalledFunction()->arg_size()) return true;
        addresses_.insert(call.getCalledFunction()->getArg(number));
        return false;
      default:
        return !call.doesNotCapture(number) || !call.onlyReadsMemory(number);
    }
  }

  const Sections& sections_;
  llvm::SmallSetVector<const llvm::Value*, 16> addresses_;
};

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
  for (const llvm::GlobalVariable& variable : module.globals()) {
    if (variable.isConstant() || variable.isThreadLocal()) continue;
    if (AddressUses(sections).may_write_to(variable)) changed_.insert(&variable);
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
      for (const llvm::Instruction& instruction : llvm::reverse(*block)) {
        step_backwards(instruction, read);
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
  for (const llvm::Instruction& later : llvm::reverse(*instruction.getParent())) {
    if (&later == &instruction) break;
    step_backwards(later, read);
  }
  return {read.begin(), read.end()};
}

void LiveGlobals::step_backwards(const llvm::Instruction& instruction, Set& read) const {
  // What comes behind is never resumed.
  if (ends_all_sections(instruction)) read.clear();
  if (const auto found = kept_.read_of(instruction)) read.insert(*found);
}

}  // namespace pawl::compiler::fase
