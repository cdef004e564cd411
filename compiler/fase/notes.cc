#include "notes.h"

#include <algorithm>

#include "callees.h"
#include "faults.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "window.h"

namespace pawl::compiler::fase {
namespace {

// A note for more bytes than were stored costs the run-time little, as long as they are this near.
constexpr std::int64_t kSpanMax = 256;

class Notes {
 public:
  explicit Notes(RunTime& run_time) : run_time_(run_time) {}

  void emit(const NotedWrites& noted) {
    const Write& write = noted.parts.front().write;
    llvm::Instruction* first = noted.parts.front().instruction;
    llvm::Instruction* last = noted.parts.back().instruction;
    if (write.pointer->getType()->getPointerAddressSpace() != 0) return;
    if (write.provenance == Provenance::kVolatile) {
      // Variables of the stack are made anew in recovery.
      if (!noted.is_inside || is_local_variable(write.pointer)) return;
      llvm::IRBuilder<> builder(first);
      write.operand->set(target(builder, noted, write.pointer));
      return;
    }
    llvm::IRBuilder<> builder(first);
    llvm::Value* pointer = write.pointer;
    if (noted.base != nullptr)
      pointer = builder.CreatePtrAdd(noted.base, builder.getInt64(noted.first));
    if (write.provenance == Provenance::kPersistent) {
      note(noted, pointer, last->getNextNode());
      return;
    }
    llvm::Value* in_window = is_in_window(builder, pointer);
    if (noted.is_inside) redirect(noted, pointer, in_window);
    note(noted, pointer, llvm::SplitBlockAndInsertIfThen(in_window, last->getNextNode(), false));
  }

 private:
  llvm::Value* length_of(llvm::IRBuilder<>& builder, const NotedWrites& noted) {
    if (noted.base != nullptr) {
      return builder.getInt64(static_cast<std::uint64_t>(noted.end - noted.first));
    }
    const Write& write = noted.parts.front().write;
    if (write.length == nullptr) return builder.getInt64(write.bytes);
    return builder.CreateZExtOrTrunc(write.length, builder.getInt64Ty());
  }

  void note(const NotedWrites& noted, llvm::Value* pointer, llvm::Instruction* before) {
    llvm::IRBuilder<> builder(before);
    builder.SetCurrentDebugLocation(noted.parts.back().instruction->getDebugLoc());
    llvm::Value* length = length_of(builder, noted);
    if (!has_fault("notes")) builder.CreateCall(run_time_.stored(), {pointer, length});
  }

  // In recovery, what is stored into volatile memory goes elsewhere.
  void redirect(const NotedWrites& noted, llvm::Value* pointer, llvm::Value* in_window) {
    llvm::Instruction* first = noted.parts.front().instruction;
    llvm::BasicBlock* hot = first->getParent();
    llvm::IRBuilder<> before(first);
    llvm::Instruction* cold = llvm::SplitBlockAndInsertIfThen(
        before.CreateNot(in_window), first, /*Unreachable=*/false,
        llvm::MDBuilder(first->getContext()).createUnlikelyBranchWeights());
    llvm::IRBuilder<> builder(cold);
    builder.SetCurrentDebugLocation(first->getDebugLoc());
    llvm::Value* elsewhere = target(builder, noted, pointer);
    llvm::IRBuilder<> joined(first->getParent(), first->getParent()->begin());
    llvm::PHINode* chosen = joined.CreatePHI(pointer->getType(), 2);
    chosen->addIncoming(pointer, hot);
    chosen->addIncoming(elsewhere, cold->getParent());
    for (const NotedWrites::Part& part : noted.parts) {
      llvm::IRBuilder<> at(part.instruction);
      const std::int64_t distance = part.offset - noted.first;
      part.write.operand->set(distance == 0 ? chosen
                                            : at.CreatePtrAdd(chosen, at.getInt64(distance)));
    }
  }

  llvm::Value* target(llvm::IRBuilder<>& builder, const NotedWrites& noted, llvm::Value* pointer) {
    return builder.CreateCall(run_time_.volatile_target(), {pointer, length_of(builder, noted)});
  }

  RunTime& run_time_;
};

// What may come between writes that share a note: nothing that ends a region, or does not return.
bool can_be_between(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return !instruction.isAtomic() && !instruction.isVolatile();
  const Callee callee = callee_of(*call);
  return callee == Callee::kNothing || callee == Callee::kReads;
}

// The group with the write added, if it is near enough and of the same object.
bool take(NotedWrites& noted, const NotedWrites::Part& part, const llvm::DataLayout& layout) {
  NotedWrites::Part& known = noted.parts.front();
  const auto is_plain = [](const NotedWrites::Part& of) {
    return llvm::isa<llvm::StoreInst>(of.instruction) &&
           of.write.provenance != Provenance::kVolatile &&
           of.write.pointer->getType()->getPointerAddressSpace() == 0;
  };
  if (!is_plain(known) || !is_plain(part) || known.write.provenance != part.write.provenance) {
    return false;
  }
  const auto base_of = [&](llvm::Value* pointer, std::int64_t& offset) {
    llvm::APInt sum(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    llvm::Value* base =
        pointer->stripAndAccumulateConstantOffsets(layout, sum, /*AllowNonInbounds=*/false);
    offset = sum.getSExtValue();
    return base;
  };
  std::int64_t known_offset = 0;
  std::int64_t offset = 0;
  llvm::Value* base = base_of(known.write.pointer, known_offset);
  if (base_of(part.write.pointer, offset) != base) return false;
  const bool is_first = noted.base == nullptr;
  const std::int64_t known_end = known_offset + static_cast<std::int64_t>(known.write.bytes);
  const std::int64_t first = std::min(is_first ? known_offset : noted.first, offset);
  const std::int64_t end = std::max(is_first ? known_end : noted.end,
                                    offset + static_cast<std::int64_t>(part.write.bytes));
  if (end - first > kSpanMax) return false;
  known.offset = known_offset;
  noted.base = base;
  noted.first = first;
  noted.end = end;
  noted.parts.push_back(part);
  noted.parts.back().offset = offset;
  return true;
}

}  // namespace

std::vector<NotedWrites> find_writes(const FunctionPlan& plan, const Sections& sections) {
  const llvm::DataLayout& layout = plan.function->getParent()->getDataLayout();
  llvm::DenseSet<const llvm::Instruction*> cuts;
  for (const Region& region : plan.regions) cuts.insert(region.at);
  std::vector<NotedWrites> found;
  for (llvm::BasicBlock& block : *plan.function) {
    bool is_group_open = false;
    for (llvm::Instruction& instruction : block) {
      const std::optional<Write> write = write_of(instruction);
      if (cuts.contains(&instruction) || (!write && !can_be_between(instruction))) {
        is_group_open = false;
      }
      if (!write) continue;
      const NotedWrites::Part part{&instruction, *write, 0};
      const bool is_inside = sections.before(instruction) != Inside::kNever;
      if (is_group_open && found.back().is_inside == is_inside &&
          take(found.back(), part, layout)) {
        continue;
      }
      NotedWrites& noted = found.emplace_back();
      noted.parts.push_back(part);
      noted.is_inside = is_inside;
      is_group_open = true;
    }
  }
  return found;
}

void emit_notes(const std::vector<NotedWrites>& writes, RunTime& run_time) {
  Notes notes(run_time);
  // From the last to the first: each splits its block, and what is behind it is moved.
  for (const NotedWrites& noted : llvm::reverse(writes)) notes.emit(noted);
}

}  // namespace pawl::compiler::fase
