// Rule d: from each write forward over all ways to the next call that ends its region, or to where
// the function ends.
#include "abi_calls.h"
#include "function_scene.h"
#include "llvm/IR/InstIterator.h"
#include "report.h"
#include "window_facts.h"

namespace pawl::compiler::fase_verifier {
namespace {

bool ends_region(const llvm::Instruction& instruction, const ModuleFacts& facts) {
  switch (abi_call(instruction)) {
    case AbiCall::kNone:
      break;
    case AbiCall::kStored:
    case AbiCall::kVolatileTarget:
    case AbiCall::kVolatileLoad:
    case AbiCall::kRefuse:
    case AbiCall::kRefuseUnarmed:
    case AbiCall::kRoot:
    case AbiCall::kSetRoot:
    case AbiCall::kQuiet:
      return false;
    default:
      return true;
  }
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return call != nullptr && facts.may_begin_region(*call);
}

class NoteSearch {
 public:
  NoteSearch(const FunctionScene& scene, const Access& write) : scene_(scene), write_(write) {}

  bool at(const llvm::Instruction& instruction, WayState& way) {
    if (missing_ != nullptr) return false;
    // The place that was written has no name any more.
    if (depends_on(write_, instruction)) way.mark = 1;
    if (abi_call(instruction) == AbiCall::kStored && way.mark == 0) {
      const auto& call = llvm::cast<llvm::CallBase>(instruction);
      const Access note = noted(call);
      if (covers(note, write_)) return false;
    }
    if (!ends_region(instruction, scene_.facts)) return true;
    missing_ = &instruction;
    return false;
  }
  bool over(const llvm::BasicBlock& from, const llvm::BasicBlock& to, WayState& way) const {
    if (missing_ != nullptr) return false;
    // The bytes are not in the window: there is nothing to note.
    return way.mark != 0 || write_.pointer == nullptr ||
           in_window(from, to, write_.pointer) != std::optional(false);
  }
  void end(const llvm::BasicBlock& block, const WayState&) {
    // Code that is never reached, and what ends the program.
    if (missing_ == nullptr && !llvm::isa<llvm::UnreachableInst>(block.getTerminator())) {
      missing_ = block.getTerminator();
    }
  }

  const llvm::Instruction* missing() const { return missing_; }

 private:
  static Access noted(const llvm::CallBase& call) {
    Access note{.by = &call, .pointer = own_address(call.getArgOperand(0))};
    const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(1));
    if (bytes == nullptr) note.length = call.getArgOperand(1);
    if (bytes != nullptr) note.bytes = bytes->getZExtValue();
    return note;
  }

  const FunctionScene& scene_;
  const Access& write_;
  const llvm::Instruction* missing_ = nullptr;
};

// Whether all ways to a write have asked for the window, and it is not in it.
class OutsideSearch {
 public:
  explicit OutsideSearch(const Access& write) : write_(write), object_(object_of(write.pointer)) {}

  bool at(const llvm::Instruction& instruction, const WayState&) {
    may_be_inside_ |= &instruction == object_;  // before, it was another one
    return !may_be_inside_;
  }
  bool over(const llvm::BasicBlock& from, const llvm::BasicBlock& to, const WayState&) const {
    return !may_be_inside_ && in_window(from, to, write_.pointer) != std::optional(false);
  }
  void end(const llvm::BasicBlock&, const WayState&) { may_be_inside_ = true; }

  bool may_be_inside() const { return may_be_inside_; }

 private:
  const Access& write_;
  const llvm::Value* object_;
  bool may_be_inside_ = false;
};

bool may_be_in_window(const FunctionScene& scene, const llvm::Instruction& instruction,
                      const Access& write) {
  if (write.pointer == nullptr) return true;
  OutsideSearch search(write);
  scene.backward(instruction, search);
  return search.may_be_inside();
}

}  // namespace

void check_notes(const FunctionScene& scene) {
  // What the questions before the notes are about is known of the function itself, and the resume
  // form does the same.
  if (scene.is_resume_form()) return;
  for (const llvm::Instruction& instruction : llvm::instructions(scene.function)) {
    for (const Access& write : persistent_writes(instruction)) {
      // The run-time's own stores are known to it; in sections only is a note a promise.
      if (write.is_root || scene.is_run_times(write)) continue;
      NoteSearch search(scene, write);
      scene.forward(instruction, search);
      if (search.missing() == nullptr || !may_be_in_window(scene, instruction, write)) continue;
      scene.reports.error(instruction, 'd',
                          "of what is stored here (" + name_of(instruction) +
                              ") the run-time is not told, or not of all, before " +
                              name_of(*search.missing()));
    }
  }
}

}  // namespace pawl::compiler::fase_verifier
