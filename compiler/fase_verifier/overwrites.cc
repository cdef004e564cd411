// Rules a and b: from each write back over all ways to the cuts at which its region may have begun.
#include "abi_calls.h"
#include "function_scene.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "report.h"
#include "window_facts.h"

namespace pawl::compiler::fase_verifier {
namespace {

struct Reader {
  Access read;
  bool is_call = false;  // of a function of this module, that reads what nobody knows
};

// Whether a region may have begun without a call that says so, and the FASE goes on behind it.
bool may_end_region(const llvm::Instruction& instruction, const ModuleFacts& facts) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return call != nullptr && abi_call(instruction) == AbiCall::kNone &&
         facts.may_begin_region(*call);
}

// Of the regions into which a resume form goes over the edge, the kind of one; one that does not
// begin at a cut, if there is any.
std::optional<std::uint64_t> kind_entered(const FunctionScene& scene, const llvm::BasicBlock& from,
                                          const llvm::BasicBlock* to) {
  const Table* table = scene.facts.resumed_by(scene.function);
  if (table == nullptr) return std::nullopt;
  const auto* choice = llvm::dyn_cast<llvm::SwitchInst>(from.getTerminator());
  if (choice != nullptr && choice->getCondition() != scene.function.getArg(0)) choice = nullptr;
  // With one region only there is nothing to choose.
  if (choice == nullptr && to != nullptr) return std::nullopt;
  std::optional<std::uint64_t> kind;
  for (std::uint64_t region = 0; region < table->regions.size(); ++region) {
    if (choice != nullptr) {
      auto* number = llvm::ConstantInt::get(
          llvm::cast<llvm::IntegerType>(choice->getCondition()->getType()), region);
      if (choice->findCaseValue(number)->getCaseSuccessor() != to) continue;
    }
    if (!kind.has_value() || *kind == kAtCut) kind = table->regions[region].kind;
  }
  return kind;
}

// Of the way from a write back to a read.
enum Mark : unsigned {
  kPlain = 0,
  kUnallocated = 1,  // it goes over the allocation of what is written: nobody has read that before
  kRecomputed = 2,   // over the computation of the written address: before, it was another one
};

// Of an address; a number may by chance be that of what is allocated later.
bool is_computed_before(const llvm::Value* value, const llvm::Instruction& allocation,
                        const llvm::DominatorTree& dominators) {
  if (!value->getType()->isPointerTy()) return false;
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  return instruction == nullptr ||
         (instruction != &allocation && dominators.dominates(instruction, &allocation));
}

// From a write backward.
class RegionSearch {
 public:
  RegionSearch(const FunctionScene& scene, const Access& write) : scene_(scene), write_(write) {
    if (write.pointer == nullptr) return;
    object_ = object_of(write.pointer);
    allocation_ = allocation_of(write.pointer);
  }

  bool at(const llvm::Instruction& instruction, WayState& way) {
    switch (abi_call(instruction)) {
      case AbiCall::kCut:
      case AbiCall::kReleaseLast:
        return false;
      case AbiCall::kTryAcquire:
      case AbiCall::kAcquire:
        if (way.passes_failed(instruction)) return true;
        [[fallthrough]];
      case AbiCall::kRelease:
      case AbiCall::kWait:
        forced_ends_.insert(&instruction);
        return false;
      case AbiCall::kReturn:
        if (scene_.facts.may_be_inside(instruction)) forced_ends_.insert(&instruction);
        return false;
      default:
        break;
    }
    if (may_end_region(instruction, scene_.facts)) {
      if (scene_.facts.may_be_inside(instruction)) forced_ends_.insert(&instruction);
      return false;
    }
    note_readers(instruction, way);
    if (&instruction == object_) way.mark |= kRecomputed;
    if (&instruction == way.object && !llvm::isa<llvm::PHINode>(instruction)) way.object = nullptr;
    if (&instruction == allocation_) way.mark |= kUnallocated;
    return true;
  }

  bool over(const llvm::BasicBlock& from, const llvm::BasicBlock& to, WayState& way) {
    if (const llvm::Instruction* lock = not_acquired(from, to)) way.failed = lock;
    if (const auto kind = kind_entered(scene_, from, &to)) {
      if (*kind != kAtCut) forced_ends_.insert(from.getTerminator());
      return false;
    }
    // In a resume form addresses are loaded that were computed from one another.  That the cut asks
    // for the right ones is seen in the function itself.
    const bool is_resumed = scene_.is_resume_form();
    if (is_resumed && is_past_asked_cut(from, to)) return false;
    const auto* choice = llvm::dyn_cast_or_null<llvm::PHINode>(way.object);
    if (choice != nullptr && choice->getParent() == &to) {
      way.object = object_of(choice->getIncomingValueForBlock(&from));
    }
    // What is written is volatile on this way: it needs no cut.
    return way.object == nullptr || in_window(from, to, way.object) != std::optional(false);
  }

  void end(const llvm::BasicBlock& block, const WayState&) {
    if (!scene_.facts.may_enter_inside(scene_.function)) return;
    if (const auto kind = kind_entered(scene_, block, nullptr); kind == kAtCut) return;
    forced_ends_.insert(&block.front());
  }

  const auto& readers() const { return readers_; }
  // Behind which no cut comes before the write.
  const auto& forced_ends() const { return forced_ends_; }

 private:
  // An address that was there before a block was allocated does not lead into it.
  bool is_apart(const Access& read, const WayState& way) const {
    if (read.pointer == nullptr || write_.pointer == nullptr) return false;
    if (allocation_ != nullptr &&
        is_computed_before(object_of(read.pointer), *allocation_, scene_.dominators)) {
      return true;
    }
    const llvm::Instruction* read_allocation = allocation_of(read.pointer);
    return read_allocation != nullptr && (way.mark & kRecomputed) == 0 &&
           is_computed_before(object_, *read_allocation, scene_.dominators);
  }

  void note_readers(const llvm::Instruction& instruction, const WayState& way) {
    if ((way.mark & kUnallocated) != 0) return;
    for (const Access& read : persistent_reads(instruction)) {
      if (is_apart(read, way)) continue;
      if (scene_.aliasing.may_overwrite(write_, read, way.has_looped)) readers_.push_back({read});
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || abi_call(*call) != AbiCall::kNone) return;
    const llvm::Function* callee = call->getCalledFunction();
    const bool is_quiet = callee != nullptr && scene_.facts.is_quiet(*callee);
    if (!is_quiet && foreign(*call) != Foreign::kReads) return;
    if (!scene_.aliasing.may_overwrite_input_of(write_, *call)) return;
    readers_.push_back({{.by = call}, /*is_call=*/true});
  }

  const FunctionScene& scene_;
  const Access& write_;
  const llvm::Value* object_ = nullptr;  // that is written
  const llvm::Instruction* allocation_ = nullptr;
  llvm::SmallVector<Reader, 4> readers_;
  llvm::SmallSetVector<const llvm::Instruction*, 4> forced_ends_;
};

// From a read backward: whether all ways from where its region began have written it before.
class ProtectionSearch {
 public:
  explicit ProtectionSearch(const Access& read) : read_(read) {}

  bool at(const llvm::Instruction& instruction, WayState& way) {
    switch (abi_call(instruction)) {
      case AbiCall::kCut:
        is_exposed_ = true;
        return false;
      // From these the write was reached without a cut, or not in this section.
      case AbiCall::kReleaseLast:
      case AbiCall::kAcquire:
      case AbiCall::kRelease:
      case AbiCall::kReturn:
      case AbiCall::kWait:
        return false;
      default:
        break;
    }
    const bool is_known = way.mark == 0;
    if (is_known) {
      for (const Access& write : writes(instruction)) {
        if (covers(write, read_)) return false;
      }
    }
    // Before this, the same value was another one.
    if (depends_on(read_, instruction)) way.mark = 1;
    return !is_exposed_;
  }
  bool over(const llvm::BasicBlock&, const llvm::BasicBlock&, WayState&) const {
    return !is_exposed_;
  }
  void end(const llvm::BasicBlock&, const WayState&) { is_exposed_ = true; }

  bool is_exposed() const { return is_exposed_; }

 private:
  const Access& read_;
  bool is_exposed_ = false;
};

bool is_exposed(const FunctionScene& scene, const Reader& reader) {
  if (reader.is_call || reader.read.pointer == nullptr) return true;
  ProtectionSearch search(reader.read);
  scene.backward(*reader.read.by, search);
  return search.is_exposed();
}

// memmove() of what overlaps reads what it has overwritten, when it is done again; so does an
// atomic operation, which is refused: to persistent memory it comes behind a cut (rule b), so
// behind a frame.
void check_itself(const FunctionScene& scene, const Access& write) {
  if (llvm::isa<llvm::MemCpyInst, llvm::MemCpyInlineInst>(write.by)) return;
  if (refusal_of(*write.by) == AbiCall::kRefuse) return;
  for (const Access& read : persistent_reads(*write.by)) {
    if (!scene.aliasing.may_overwrite(write, read, /*has_looped=*/false)) continue;
    scene.reports.error(*write.by, 'a',
                        "what is read here may be overwritten by the same instruction");
  }
}

void check_write(const FunctionScene& scene, const Access& write) {
  RegionSearch search(scene, write);
  scene.backward(*write.by, search, write.pointer == nullptr ? nullptr : object_of(write.pointer));
  for (const llvm::Instruction* end : search.forced_ends()) {
    scene.reports.error(*write.by, 'b',
                        "no region begins between " + name_of(*end) + " and what is stored here (" +
                            name_of(*write.by) + ")");
    return;
  }
  const bool is_resumed = scene.is_resume_form();
  // What may alias there is known of the function itself, and the resume form does the same.
  if (is_resumed) return;
  // Where no lock is held there is no region.
  if (!scene.facts.may_be_inside(*write.by)) return;
  for (const Reader& reader : search.readers()) {
    if (!is_exposed(scene, reader)) continue;
    scene.reports.error(*write.by, 'a',
                        "what a region reads (" + name_of(*reader.read.by) +
                            ") may be overwritten here, in the same region (" + name_of(*write.by) +
                            ")");
    return;
  }
  check_itself(scene, write);
}

}  // namespace

void check_overwrites(const FunctionScene& scene) {
  // A resume form runs in recovery only.  Its addresses may come from frames: what they lead to is
  // seen in the function itself.
  const bool is_resumed = scene.is_resume_form();
  for (const llvm::Instruction& instruction : llvm::instructions(scene.function)) {
    for (const Access& write : persistent_writes(instruction)) {
      if (scene.is_run_times(write)) continue;
      if (is_resumed && goes_nowhere_in_recovery(write)) continue;
      check_write(scene, write);
    }
  }
}

}  // namespace pawl::compiler::fase_verifier
