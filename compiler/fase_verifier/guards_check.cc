// Rule e: from each access of memory that may be volatile back over all ways to where a frame may
// have been logged: in between, or before it, the run-time must have had its say.
#include "abi_calls.h"
#include "function_scene.h"
#include "llvm/IR/InstIterator.h"
#include "report.h"
#include "window_facts.h"

namespace pawl::compiler::fase_verifier {
namespace {

enum GuardMark : unsigned {
  kUnmarked = 0,
  kArmed = 1,    // behind this point a frame may have been logged: a question asked before
                 // does not count, but what is in the window stays there
  kUnnamed = 2,  // before this point the address was another one
};

// What a variable of the program holds is in each frame behind which it is read, and there the
// resume form reads it.  It must be asked for only where the caller's frame may be the last one.
const llvm::GlobalVariable* kept_variable(const llvm::Instruction& instruction,
                                          const Access& access, const ModuleFacts& facts) {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
  if (load == nullptr || !load->isSimple()) return nullptr;
  const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object_of(access.pointer));
  const bool is_kept =
      variable != nullptr && !variable->isThreadLocal() && facts.is_kept(*variable);
  return is_kept ? variable : nullptr;
}

class GuardSearch {
 public:
  GuardSearch(const FunctionScene& scene, const Access& access, bool is_load,
              const llvm::GlobalVariable* kept)
      : scene_(scene),
        access_(access),
        object_(object_of(access.pointer)),
        is_load_(is_load),
        kept_(kept) {}

  bool at(const llvm::Instruction& instruction, WayState& way) {
    if (is_open_) return false;
    switch (abi_call(instruction)) {
      case AbiCall::kVolatileLoad: {
        const auto& call = llvm::cast<llvm::CallBase>(instruction);
        constexpr unsigned kAt = 2;
        if (kept_ != nullptr && is_never_persistent(call.getArgOperand(kAt))) return begins(way);
        if (is_load_ && way.mark == kUnmarked && object_of(call.getArgOperand(kAt)) == object_) {
          return false;
        }
        return true;
      }
      // If there is a frame, what follows is in vain.
      case AbiCall::kRefuse:
        return (way.mark & kArmed) != 0;
      // No section, and so no frame, goes on behind these.
      case AbiCall::kReleaseLast:
      case AbiCall::kWait:
        return begins(way);
      case AbiCall::kTryAcquire:
      case AbiCall::kAcquire:
        if (way.passes_failed(instruction)) return true;
        // The first lock of a section, unless there may be another.
        if (!scene_.facts.may_be_inside(instruction)) return begins(way);
        return true;
      default:
        break;
    }
    if (scene_.facts.may_arm(instruction) && scene_.facts.may_be_inside(*behind(instruction))) {
      way.mark |= kArmed;
    }
    if (&instruction == object_) way.mark |= kUnnamed;
    return true;
  }
  bool over(const llvm::BasicBlock& from, const llvm::BasicBlock& to, WayState& way) const {
    if (const llvm::Instruction* lock = not_acquired(from, to)) way.failed = lock;
    if (is_open_) return false;
    if ((way.mark & kUnnamed) != 0) return true;
    return in_window(from, to, access_.pointer) != std::optional(true);
  }
  void end(const llvm::BasicBlock&, const WayState& way) {
    is_open_ |= !is_in_frames() && (way.mark & kArmed) != 0;
    is_open_ |= scene_.facts.may_enter_armed(scene_.function);
  }

  bool is_open() const { return is_open_; }

 private:
  static const llvm::Instruction* behind(const llvm::Instruction& instruction) {
    return instruction.isTerminator() ? &instruction : instruction.getNextNode();
  }
  bool is_in_frames() const { return kept_ != nullptr && scene_.facts.is_told(*kept_); }
  bool begins(const WayState& way) {
    is_open_ |= !is_in_frames() && (way.mark & kArmed) != 0;
    return false;
  }

  const FunctionScene& scene_;
  const Access& access_;
  const llvm::Value* object_;
  const bool is_load_;
  const llvm::GlobalVariable* const kept_;  // what frames may hold; null: it is nothing such
  bool is_open_ = false;
};

// What is stored goes, in recovery, where nobody reads, and there is room for it.
bool has_target(const Access& write) {
  if (write.choice == nullptr) return false;
  llvm::SmallVector<const llvm::Value*, 4> values{write.choice};
  for (unsigned i = 0; i < values.size(); ++i) {
    const llvm::Value* value = values[i];
    if (i == kChoicesMax) return false;
    if (value == write.pointer) continue;
    if (is_volatile_target(value)) {
      const llvm::Value* bytes = llvm::cast<llvm::CallInst>(value)->getArgOperand(1);
      const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(bytes);
      if (constant == nullptr && (write.length != bytes || write.offset != 0)) return false;
      if (constant == nullptr) continue;
      const std::uint64_t end = static_cast<std::uint64_t>(write.offset) + write.bytes;
      if (write.length != nullptr || write.is_unbounded || write.offset < 0) return false;
      if (end > constant->getZExtValue()) return false;
      continue;
    }
    const auto* choice = llvm::dyn_cast<llvm::Instruction>(value);
    if (choice == nullptr) return false;
    for (const llvm::Value* one : choice->operands()) {
      if (one->getType()->isPointerTy() && !llvm::is_contained(values, one)) values.push_back(one);
    }
  }
  return true;
}

}  // namespace

namespace {

constexpr unsigned kUsesMax = 64;

// True of the stack's memory that is only stored to and logged.
bool is_for_frames_only(const llvm::Value& pointer) {
  const auto* buffer = llvm::dyn_cast<llvm::AllocaInst>(object_of(&pointer));
  if (buffer == nullptr) return false;
  llvm::SmallVector<const llvm::Value*, 16> addresses{buffer};
  for (unsigned i = 0; i < addresses.size(); ++i) {
    for (const llvm::User* user : addresses[i]->users()) {
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
      if (llvm::isa<llvm::GetElementPtrInst>(user)) {
        addresses.push_back(user);
      } else if (store != nullptr ? store->getValueOperand() == addresses[i]
                                  : !frame_of(*llvm::cast<llvm::Instruction>(user)).has_value()) {
        return false;
      }
    }
  }
  return true;
}

// True of what is read of a variable of the program to be stored into such again, and for nothing
// else: in recovery it reads what is there, and what it stores goes nowhere.
bool stays_volatile(const llvm::Instruction& instruction, const Access& read) {
  const bool is_update = llvm::isa<llvm::AtomicRMWInst>(instruction);
  if (!is_update && !llvm::isa<llvm::LoadInst>(instruction)) return false;
  if (!is_variable(read.pointer)) return false;
  llvm::SmallVector<const llvm::Instruction*, 8> values{&instruction};
  for (unsigned i = 0; i < values.size(); ++i) {
    if (i == kUsesMax) return false;
    for (const llvm::User* user : values[i]->users()) {
      const auto* of = llvm::cast<llvm::Instruction>(user);
      if (llvm::isa<llvm::StoreInst>(of)) {
        const Accesses written = writes(*of);
        const bool is_volatile = written.size() == 1 && is_variable(written[0].pointer);
        const bool is_value = of->getOperand(0) == values[i];
        if (!is_value || !(is_volatile || is_for_frames_only(*of->getOperand(1)))) return false;
      } else if (llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::UnaryOperator, llvm::CmpInst,
                           llvm::SelectInst, llvm::FreezeInst, llvm::PHINode>(of)) {
        if (!llvm::is_contained(values, of)) values.push_back(of);
      } else {
        return false;
      }
    }
  }
  return true;
}

// What is known of addresses there is known of the function itself, and the resume form does the
// same.  But variables of the program it has from frames, or the run-time is asked, as it is of all
// that is volatile: what stands behind a section may stand in one of the caller's.
void check_resumed(const FunctionScene& scene) {
  for (const llvm::Instruction& instruction : llvm::instructions(scene.function)) {
    for (const Access& read : reads(instruction)) {
      if (read.pointer == nullptr || kept_variable(instruction, read, scene.facts) == nullptr)
        continue;
      if (stays_volatile(instruction, read)) continue;
      GuardSearch search(scene, read, /*is_load=*/true, /*kept=*/nullptr);
      scene.backward(instruction, search);
      if (!search.is_open()) continue;
      scene.reports.error(instruction, 'e',
                          "a resume form reads a variable of the program (" + name_of(instruction) +
                              "), and not its frame");
    }
  }
}

}  // namespace

void check_guards(const FunctionScene& scene) {
  if (scene.is_resume_form()) return check_resumed(scene);
  for (const llvm::Instruction& instruction : llvm::instructions(scene.function)) {
    for (const Access& read : reads(instruction)) {
      if (read.is_root || read.pointer == nullptr || is_always_persistent(read.pointer)) continue;
      if (stays_volatile(instruction, read)) continue;
      GuardSearch search(scene, read, /*is_load=*/true,
                         kept_variable(instruction, read, scene.facts));
      scene.backward(instruction, search);
      if (!search.is_open()) continue;
      scene.reports.error(instruction, 'e',
                          "volatile memory may be read here (" + name_of(instruction) +
                              ") in a section that has a frame, and the run-time is not asked");
    }
    for (const Access& write : writes(instruction)) {
      if (write.is_root || write.pointer == nullptr || is_always_persistent(write.pointer) ||
          has_target(write)) {
        continue;
      }
      GuardSearch search(scene, write, /*is_load=*/false, /*kept=*/nullptr);
      scene.backward(instruction, search);
      if (!search.is_open()) continue;
      scene.reports.error(instruction, 'e',
                          "volatile memory may be written here (" + name_of(instruction) +
                              ") in recovery, and the run-time is not asked where");
    }
  }
}

}  // namespace pawl::compiler::fase_verifier
