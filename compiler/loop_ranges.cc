#include "loop_ranges.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"
#include "near_stores.h"

namespace pawl::compiler {
namespace {

constexpr std::size_t kExitsMax = 4;
constexpr std::size_t kRangesMax = 8;  // of one loop

// What a loop stores: `bytes` at the pointer, which moves by `step` with each turn.
struct Range {
  StoreSite lowest;
  std::int64_t bytes = 0;
  std::int64_t step = 0;
  const llvm::SCEVAddRecExpr* moving = nullptr;  // null when step is 0
};

bool has_barrier(const llvm::Loop& loop) {
  for (const llvm::BasicBlock* block : loop.blocks()) {
    for (const llvm::Instruction& instruction : *block) {
      if (is_barrier(instruction)) return true;
    }
  }
  return false;
}

class RangeMarks {
 public:
  RangeMarks(llvm::Loop& loop, llvm::DominatorTree& dominators, llvm::ScalarEvolution& evolution,
             const llvm::DataLayout& layout)
      : loop_(loop),
        dominators_(dominators),
        evolution_(evolution),
        expander_(evolution, layout, "pawl", /*PreserveLCSSA=*/false) {
    loop.getUniqueExitBlocks(exits_);
  }

  bool can_mark_exits() const {
    if (exits_.empty() || exits_.size() > kExitsMax || !loop_.isLoopSimplifyForm()) return false;
    return std::all_of(exits_.begin(), exits_.end(), [](const llvm::BasicBlock* exit) {
      return !exit->isEHPad() && exit->getFirstInsertionPt() != exit->end();
    });
  }

  // False, and nothing was added, when the range cannot be had.
  bool add(const Range& range, std::vector<Mark>& marks) {
    if (range.moving == nullptr) return add_fixed(range, marks);
    return add_counted(range, marks) || add_by_last_pointer(range, marks);
  }

  void take_computed(std::vector<llvm::Instruction*>& computed) {
    for (llvm::Instruction* made : expander_.getAllInsertedInstructions()) computed.push_back(made);
    computed.insert(computed.end(), made_.begin(), made_.end());
  }

 private:
  using Exit = llvm::BasicBlock;

  static llvm::Instruction* start_of(Exit* exit) { return &*exit->getFirstInsertionPt(); }

  bool can_expand(const llvm::SCEV* value, const llvm::Instruction* at) const {
    return expander_.isSafeToExpandAt(value, at);
  }

  // The same place in every turn.
  bool add_fixed(const Range& range, std::vector<Mark>& marks) {
    llvm::Value* place = range.lowest.pointer;
    // Where it is computed in the loop, it is computed again behind it.
    const bool is_outside = loop_.isLoopInvariant(place);
    const llvm::SCEV* pointer = evolution_.getSCEV(place);
    for (Exit* exit : exits_) {
      if (!is_outside && !can_expand(pointer, start_of(exit))) return false;
    }
    for (Exit* exit : exits_) {
      llvm::Value* value =
          is_outside ? place : expander_.expandCodeFor(pointer, place->getType(), start_of(exit));
      marks.push_back({start_of(exit), value, length(range.bytes), true});
    }
    return true;
  }

  // The number of turns is known when the loop has one exit that can be counted.
  bool add_counted(const Range& range, std::vector<Mark>& marks) {
    if (exits_.size() != 1 || loop_.getExitingBlock() == nullptr) return false;
    const llvm::SCEV* turns = evolution_.getBackedgeTakenCount(&loop_);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(turns)) return false;
    llvm::Type* const size_type = llvm::Type::getInt64Ty(exits_[0]->getContext());
    if (evolution_.getTypeSizeInBits(turns->getType()) > 64) return false;
    const llvm::SCEV* first = range.moving->getStart();
    const llvm::SCEV* last = range.moving->evaluateAtIteration(turns, evolution_);
    const llvm::SCEV* moved =
        evolution_.getMulExpr(evolution_.getTruncateOrZeroExtend(turns, size_type),
                              evolution_.getConstant(size_type, distance_a_turn(range)));
    const llvm::SCEV* length = evolution_.getAddExpr(
        moved, evolution_.getConstant(size_type, static_cast<std::uint64_t>(range.bytes)));
    const llvm::SCEV* low = range.step > 0 ? first : last;
    llvm::Instruction* at = start_of(exits_[0]);
    if (!can_expand(low, at) || !can_expand(length, at)) return false;
    llvm::Value* pointer = expander_.expandCodeFor(low, range.lowest.pointer->getType(), at);
    llvm::Value* bytes = expander_.expandCodeFor(length, size_type, at);
    marks.push_back({at, pointer, bytes, true});
    return true;
  }

  // Otherwise: from the first pointer to the one in the turn that left the loop.  If that turn left
  // before its store, that is one too many; what is marked and was not stored to does no harm.
  bool add_by_last_pointer(const Range& range, std::vector<Mark>& marks) {
    const llvm::SCEV* first = range.moving->getStart();
    llvm::SmallVector<llvm::BasicBlock*, 4> exiting;
    loop_.getExitingBlocks(exiting);
    for (llvm::BasicBlock* block : exiting) {
      if (!reaches(range, block) && !can_expand(range.moving, block->getTerminator())) return false;
    }
    for (Exit* exit : exits_) {
      if (!can_expand(first, start_of(exit))) return false;
    }
    std::map<llvm::BasicBlock*, llvm::Value*> pointers;
    for (llvm::BasicBlock* block : exiting) {
      pointers[block] = reaches(range, block)
                            ? range.lowest.pointer
                            : expander_.expandCodeFor(range.moving, range.lowest.pointer->getType(),
                                                      block->getTerminator());
    }
    for (Exit* exit : exits_) marks.push_back(mark_between(range, first, exit, pointers));
    return true;
  }

  Mark mark_between(const Range& range, const llvm::SCEV* first, Exit* exit,
                    const std::map<llvm::BasicBlock*, llvm::Value*>& pointers) {
    llvm::IRBuilder<> builder(exit, exit->begin());
    llvm::PHINode* last = builder.CreatePHI(range.lowest.pointer->getType(), 2, "pawl.last");
    for (llvm::BasicBlock* from : llvm::predecessors(exit)) {
      last->addIncoming(pointers.at(from), from);
    }
    llvm::Instruction* at = start_of(exit);
    llvm::Value* start = expander_.expandCodeFor(first, last->getType(), at);
    builder.SetInsertPoint(at);
    llvm::Value* low = range.step > 0 ? start : last;
    llvm::Value* high = range.step > 0 ? static_cast<llvm::Value*>(last) : start;
    llvm::Type* const size_type = builder.getInt64Ty();
    llvm::Value* distance = builder.CreateSub(builder.CreatePtrToInt(high, size_type),
                                              builder.CreatePtrToInt(low, size_type));
    llvm::Value* bytes = builder.CreateAdd(distance, length(range.bytes));
    for (llvm::Value* value : {distance, bytes}) {
      if (auto* made = llvm::dyn_cast<llvm::Instruction>(value)) made_.push_back(made);
    }
    return {at, low, bytes, true};
  }

  // True when the store's pointer is there at the end of the block.
  bool reaches(const Range& range, const llvm::BasicBlock* block) const {
    const auto* pointer = llvm::dyn_cast<llvm::Instruction>(range.lowest.pointer);
    return pointer == nullptr || dominators_.dominates(pointer, block->getTerminator());
  }

  static std::uint64_t distance_a_turn(const Range& range) {
    return static_cast<std::uint64_t>(std::abs(range.step));
  }

  llvm::Value* length(std::int64_t bytes) const {
    return constant_length(exits_[0]->getContext(), static_cast<std::uint64_t>(bytes));
  }

  llvm::Loop& loop_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  llvm::SCEVExpander expander_;
  llvm::SmallVector<llvm::BasicBlock*, 4> exits_;
  std::vector<llvm::Instruction*> made_;
};

// The step of a pointer that moves evenly with the loop; 0 when it does not move.
std::optional<std::int64_t> step_of(const StoreSite& site, const llvm::Loop& loop,
                                    llvm::ScalarEvolution& evolution) {
  if (!can_share_mark(site) || !evolution.isSCEVable(site.pointer->getType())) return std::nullopt;
  const llvm::SCEV* pointer = evolution.getSCEV(site.pointer);
  if (evolution.isLoopInvariant(pointer, &loop)) return 0;
  const auto* moving = llvm::dyn_cast<llvm::SCEVAddRecExpr>(pointer);
  if (moving == nullptr || moving->getLoop() != &loop || !moving->isAffine()) return std::nullopt;
  const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(moving->getStepRecurrence(evolution));
  if (step == nullptr || step->getAPInt().getSignificantBits() > 32) return std::nullopt;
  return step->getAPInt().getSExtValue();
}

// Stores of one step that lie near each other.
struct Group {
  NearStores stores;
  std::int64_t step = 0;
  std::vector<const llvm::Instruction*> members;

  // Turn by turn the range grows with no gap in which a line may be that was not stored to.
  bool is_contiguous() const { return std::abs(step) - stores.bytes() < NearStores::kLineBytes; }
};

std::vector<Group> group_sites(const std::vector<StoreSite>& sites, const llvm::Loop& loop,
                               llvm::ScalarEvolution& evolution) {
  std::vector<Group> groups;
  for (const StoreSite& site : sites) {
    const std::int64_t step = *step_of(site, loop, evolution);
    const auto group = std::find_if(groups.begin(), groups.end(), [&](Group& candidate) {
      return candidate.step == step && candidate.stores.take(site, evolution);
    });
    if (group != groups.end()) {
      group->members.push_back(site.instruction);
    } else if (groups.size() < kRangesMax) {
      groups.push_back({NearStores(site), step, {site.instruction}});
    }
  }
  return groups;
}

}  // namespace

void LoopRanges::take_of_loop(llvm::Loop& loop, std::vector<StoreSite>& sites,
                              std::vector<Mark>& marks) {
  const llvm::BasicBlock* latch = loop.getLoopLatch();
  if (latch == nullptr) return;
  std::vector<StoreSite> candidates;  // what every turn stores
  for (const StoreSite& site : sites) {
    const llvm::BasicBlock* block = site.instruction->getParent();
    if (loops_.getLoopFor(block) == &loop && dominators_.dominates(block, latch) &&
        step_of(site, loop, evolution_)) {
      candidates.push_back(site);
    }
  }
  if (candidates.empty() || has_barrier(loop)) return;
  RangeMarks range_marks(loop, dominators_, evolution_, latch->getModule()->getDataLayout());
  if (!range_marks.can_mark_exits()) return;
  for (const Group& group : group_sites(candidates, loop, evolution_)) {
    if (!group.is_contiguous()) continue;
    const StoreSite& lowest = group.stores.lowest();
    const auto* moving = group.step == 0
                             ? nullptr
                             : llvm::cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(lowest.pointer));
    if (!range_marks.add({lowest, group.stores.bytes(), group.step, moving}, marks)) continue;
    std::erase_if(sites, [&](const StoreSite& site) {
      return can_share_mark(site) && llvm::is_contained(group.members, site.instruction);
    });
  }
  range_marks.take_computed(computed_);
}

void LoopRanges::take(std::vector<StoreSite>& sites, std::vector<Mark>& marks) {
  llvm::SmallPtrSet<llvm::Loop*, 8> outermost;
  for (const StoreSite& site : sites) {
    llvm::Loop* loop = loops_.getLoopFor(site.instruction->getParent());
    if (loop != nullptr && step_of(site, *loop, evolution_)) {
      outermost.insert(loop->getOutermostLoop());
    }
  }
  for (llvm::Loop* loop : outermost) {
    llvm::simplifyLoop(loop, &dominators_, &loops_, &evolution_, &assumptions_, nullptr,
                       /*PreserveLCSSA=*/false);
  }
  for (llvm::Loop* loop : loops_.getLoopsInPreorder()) {
    if (outermost.contains(loop->getOutermostLoop())) take_of_loop(*loop, sites, marks);
  }
}

void LoopRanges::sink_into_marks() {
  for (auto made = computed_.rbegin(); made != computed_.rend(); ++made) {
    llvm::Instruction* instruction = *made;
    if (llvm::isa<llvm::PHINode>(instruction) || instruction->use_empty()) continue;
    llvm::BasicBlock* block =
        llvm::cast<llvm::Instruction>(*instruction->user_begin())->getParent();
    if (!is_mark_block(*block)) continue;
    if (llvm::all_of(instruction->users(), [&](const llvm::User* user) {
          return llvm::cast<llvm::Instruction>(user)->getParent() == block;
        })) {
      instruction->moveBefore(*block, block->begin());
    }
  }
}

}  // namespace pawl::compiler
