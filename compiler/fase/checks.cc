#include "checks.h"

#include "accesses.h"
#include "callees.h"
#include "diagnostics.h"
#include "externals.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "locals.h"
#include "window.h"

namespace pawl::compiler::fase {
namespace {

// How far a value's way is followed.
constexpr unsigned kUsesMax = 64;

// An atomic counter in volatile memory that nobody reads here: what it becomes in recovery is lost.
bool is_harmless_count(const llvm::Instruction& instruction) {
  const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction);
  return update != nullptr && update->use_empty() &&
         provenance(update->getPointerOperand()) == Provenance::kVolatile;
}

bool orders_for_compiler_only(const llvm::Instruction& instruction) {
  const auto* fence = llvm::dyn_cast<llvm::FenceInst>(&instruction);
  return fence != nullptr && fence->getSyncScopeID() == llvm::SyncScope::SingleThread;
}

// What the instruction does that cannot be in a section, or nothing.
std::string forbidden(const llvm::Instruction& instruction) {
  if (instruction.isAtomic() && !is_harmless_count(instruction) &&
      !orders_for_compiler_only(instruction)) {
    return "an atomic operation: in recovery its order among those of other threads may be "
           "another; "
           "use a lock, or do it outside";
  }
  if (llvm::isa<llvm::LandingPadInst, llvm::ResumeInst>(instruction)) return {};
  if (llvm::isa<llvm::CallBrInst>(instruction)) return "inline assembly that jumps";
  if (llvm::isa<llvm::VAArgInst>(instruction)) return {};
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || callee_of(*call) != Callee::kRefused) return {};
  std::string what = refusal_of(*call).str();
  const llvm::Function* callee = call->getCalledFunction();
  if (callee != nullptr && !callee->isIntrinsic()) {
    what = source_name(*callee) +
           (llvm::StringRef(source_name(*callee)).ends_with(")") ? "" : "()") + ": " + what;
  }
  return what;
}

// True when all that the value is for is to be stored into volatile memory: statistics.count++.
bool goes_into_volatile_memory_only(const llvm::Instruction& load) {
  // What a function of the C library reads need not end where it did.
  if (!llvm::isa<llvm::LoadInst>(load)) return false;
  llvm::SmallVector<const llvm::Instruction*, 8> to_visit = {&load};
  llvm::SmallPtrSet<const llvm::Instruction*, 8> seen = {&load};
  while (!to_visit.empty()) {
    const llvm::Instruction* value = to_visit.pop_back_val();
    for (const llvm::Use& use : value->uses()) {
      const auto* user = llvm::cast<llvm::Instruction>(use.getUser());
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(user)) {
        const bool is_value = store->getValueOperand() == value;
        if (!is_value || store->getPointerOperand() == value ||
            provenance(store->getPointerOperand()) != Provenance::kVolatile ||
            is_local_variable(store->getPointerOperand())) {
          return false;
        }
        continue;
      }
      const bool only_computes = llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::SelectInst,
                                           llvm::CmpInst, llvm::FreezeInst, llvm::PHINode>(user);
      if (!only_computes || seen.size() == kUsesMax) return false;
      if (seen.insert(user).second) to_visit.push_back(user);
    }
  }
  return true;
}

// The pointers that the instruction reads through.
llvm::SmallVector<llvm::Value*, 2> pointers_read(llvm::Instruction& instruction) {
  llvm::SmallVector<llvm::Value*, 2> pointers;
  if (const std::optional<llvm::MemoryLocation> location = location_read(instruction)) {
    pointers.push_back(const_cast<llvm::Value*>(location->Ptr));
    return pointers;
  }
  auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return pointers;
  const Callee callee = callee_of(*call);
  if (callee != Callee::kReads && callee != Callee::kWrites) return pointers;
  if (callee == Callee::kReads && call->doesNotAccessMemory()) return pointers;
  const std::optional<Write> write = write_of(instruction);
  for (llvm::Use& argument : call->args()) {
    if (!argument->getType()->isPointerTy() || (write && write->operand == &argument)) continue;
    pointers.push_back(argument);
  }
  return pointers;
}

std::string name_of(const llvm::Value* pointer) {
  const llvm::Value* object = pointer->stripInBoundsOffsets();
  if (llvm::isa<llvm::AllocaInst>(object)) return "a variable of the function";
  if (object->hasName()) return "'" + object->getName().str() + "'";
  return "a variable";
}

}  // namespace

Checks::Checks(const Sections& sections, const std::vector<FunctionPlan>& plans,
               const KeptGlobals& globals)
    : sections_(sections), plans_(plans), globals_(globals), armed_(plans, sections) {}

// True of memory that is volatile, and not kept in frames.  A copy that the caller made of an
// argument is read only at the very beginning, which is no region's.
bool Checks::is_gone_when_resumed(const llvm::Instruction& read, const llvm::Value* pointer) const {
  if (provenance(pointer) != Provenance::kVolatile || llvm::isa<llvm::Argument>(pointer) ||
      leads_to_kept_local(pointer)) {
    return false;
  }
  // Called in recovery, the function itself would read the new process's variable.
  return !globals_.read_of(read) || armed_.at_entry(*read.getFunction()) == Inside::kCertainly;
}

void Checks::report_errors() const {
  for (const FunctionPlan& plan : plans_) {
    for (llvm::Instruction& instruction : llvm::instructions(*plan.function)) {
      report(instruction);
    }
  }
}

void Checks::report(llvm::Instruction& instruction) const {
  const Inside inside = sections_.before(instruction);
  if (inside == Inside::kNever) return;
  if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
    if (!variable->isStaticAlloca() && inside == Inside::kPerhaps) {
      report_error(instruction,
                   "an array of variable length, or alloca(), in a function that may be called "
                   "in a failure-atomic section: it has another size when that is resumed; give "
                   "it a fixed size, or make the function static if no section calls it");
    } else if (!variable->isStaticAlloca()) {
      report_error(instruction,
                   "an array of variable length, or alloca(), in a function with "
                   "failure-atomic sections: it has another size when it is resumed; "
                   "give it a fixed size");
    }
  }
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call != nullptr && call->isMustTailCall() && sections_.may_cut(*call)) {
    report_error(instruction, "a call that must be a tail call: the function is resumed after it");
  }
  if (inside != Inside::kCertainly) return;
  const std::string what = forbidden(instruction);
  if (!what.empty()) {
    report_error(instruction, "in a failure-atomic section: " + what);
    return;
  }
  if (const auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&instruction)) {
    if (callee_of(*invoke) != Callee::kThrows) {
      report_error(instruction,
                   "in a failure-atomic section: a call that may throw, and here it is "
                   "caught, or destructors run: declare the function noexcept");
    }
    return;
  }
  if (armed_.at(instruction) != Inside::kCertainly) return;
  for (const llvm::Value* pointer : pointers_read(instruction)) {
    if (!is_gone_when_resumed(instruction, pointer)) continue;
    if (llvm::isa<llvm::LoadInst>(instruction) && goes_into_volatile_memory_only(instruction)) {
      continue;
    }
    report_error(
        instruction,
        "in a failure-atomic section, " + name_of(pointer) +
            " is read after something persistent was stored: it is volatile, and gone when "
            "the section is resumed" +
            (is_local_variable(pointer) ? " (its address leaves the function, or it is large)"
                                        : "") +
            "; read it before the first such store, or keep it in "
            "persistent memory");
    return;
  }
}

std::vector<Check> Checks::find(llvm::Function& function) const {
  std::vector<Check> found;
  bool is_entry_checked = false;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    const Inside inside = sections_.before(instruction);
    if (inside == Inside::kNever) continue;
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call != nullptr && callee_of(*call) == Callee::kExternal) {
      if (inside == Inside::kCertainly) {
        need_compiled(*call->getCalledFunction());
      } else {
        found.push_back(
            {CheckKind::kExternal, &instruction, nullptr, source_name(*call->getCalledFunction())});
      }
    }
    // Nobody wrote those to be executed: so they are no errors before they are.
    if (call != nullptr && callee_of(*call) == Callee::kThrows) {
      found.push_back({CheckKind::kRefuse, &instruction, nullptr, "an exception is thrown"});
    }
    if (inside == Inside::kPerhaps) {
      std::string what = forbidden(instruction);
      if (llvm::isa<llvm::LandingPadInst>(instruction)) what = "an exception is caught";
      if (!what.empty()) {
        const bool may_arm = call != nullptr && sections_.may_cut_in_call_back(*call);
        const CheckKind kind = may_arm ? CheckKind::kRefuseUnarmed : CheckKind::kRefuse;
        found.push_back({kind, &instruction, nullptr, std::move(what)});
      }
    }
    if (armed_.at(instruction) == Inside::kNever) continue;
    if (!is_entry_checked && globals_.read_of(instruction) &&
        armed_.at_entry(function) == Inside::kPerhaps &&
        !goes_into_volatile_memory_only(instruction)) {
      // Kept for what is resumed in this function; not when it is called by what is resumed.
      auto& load = llvm::cast<llvm::LoadInst>(instruction);
      found.push_back({CheckKind::kEntry, &load, load.getPointerOperand(), {}});
      is_entry_checked = true;
    }
    for (llvm::Value* pointer : pointers_read(instruction)) {
      const Provenance from = provenance(pointer);
      if (from == Provenance::kUnknown) {
        found.push_back({CheckKind::kLoad, &instruction, pointer, {}});
      } else if (is_gone_when_resumed(instruction, pointer) &&
                 !goes_into_volatile_memory_only(instruction)) {
        found.push_back({CheckKind::kVolatileLoad, &instruction, pointer, {}});
      }
    }
  }
  return found;
}

void emit_checks(std::vector<Check> checks, RunTime& run_time, Tables& tables) {
  // From the last to the first: each may split its block, and what is behind it is moved.
  for (const Check& check : llvm::reverse(checks)) {
    llvm::Instruction* before = check.before;
    if (check.kind == CheckKind::kEntry) {
      before = &*before->getFunction()->getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
    }
    if (llvm::isa<llvm::LandingPadInst>(before)) before = before->getNextNode();
    llvm::Constant* table = tables.table(*before->getFunction());
    llvm::MDNode* unlikely = llvm::MDBuilder(before->getContext()).createUnlikelyBranchWeights();
    llvm::IRBuilder<> builder(before);
    builder.SetCurrentDebugLocation(check.before->getDebugLoc());
    if (check.kind == CheckKind::kLoad) {
      llvm::Value* is_outside = builder.CreateNot(is_in_window(builder, check.pointer));
      before = llvm::SplitBlockAndInsertIfThen(is_outside, before, false, unlikely);
    } else if (check.kind == CheckKind::kExternal) {
      llvm::Constant* compiled =
          compiled_if_there(*llvm::cast<llvm::CallBase>(check.before)->getCalledFunction());
      llvm::Value* is_missing = builder.CreateIsNull(compiled);
      before = llvm::SplitBlockAndInsertIfThen(is_missing, before, false, unlikely);
    }
    builder.SetInsertPoint(before);
    builder.SetCurrentDebugLocation(check.before->getDebugLoc());
    llvm::Value* line = builder.getInt32(line_of(*check.before));
    if (check.pointer != nullptr) {
      builder.CreateCall(run_time.volatile_load(), {table, line, check.pointer});
    } else {
      const bool even_unarmed = check.kind == CheckKind::kRefuseUnarmed;
      builder.CreateCall(even_unarmed ? run_time.refuse_unarmed() : run_time.refuse(),
                         {table, line, tables.text(check.what)});
    }
  }
}

}  // namespace pawl::compiler::fase
