#include "waiting_marks.h"

#include <algorithm>
#include <iterator>

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "near_stores.h"

namespace pawl::compiler {
namespace {

constexpr unsigned kWantedMax = 16;      // objects of a block
constexpr std::size_t kOfObjectMax = 4;  // marks of an object on all ways to a block
// What different ways to a block stored is marked behind them as one range when it is no longer.
constexpr std::int64_t kJoinedMax = NearStores::kLineBytes;

// Marks can be put on each way from a block that ends so.
bool can_go_on(const llvm::BasicBlock& block) {
  return llvm::isa<llvm::BranchInst, llvm::SwitchInst>(block.getTerminator());
}

}  // namespace

bool WaitingMark::take(const WaitingMark& other) {
  if (object != other.object) return false;
  const std::int64_t low = std::min(first, other.first);
  const std::int64_t high = std::max(end, other.end);
  const std::int64_t gap = std::max(other.first - end, first - other.end);
  if (high - low > NearStores::kSpanMax && gap >= NearStores::kLineBytes) return false;
  first = low;
  end = high;
  if (last == nullptr || (other.last != nullptr && last->comesBefore(other.last)))
    last = other.last;
  return true;
}

WaitingMarks::WaitingMarks(llvm::Function& function, const std::vector<StoreSite>& sites) {
  for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function)) {
    order_[block] = blocks_.size();
    blocks_.push_back(block);
  }
  find_wanted(sites);
}

bool WaitingMarks::is_ahead(const llvm::BasicBlock& block, const llvm::BasicBlock& of) const {
  const auto found = order_.find(&block);
  return found != order_.end() && found->second < order_.lookup(&of);
}

// Not into a loop's first block, which is entered from behind as well.
bool WaitingMarks::can_enter(const llvm::BasicBlock& block) const {
  return !block.isEHPad() && !llvm::pred_empty(&block) &&
         llvm::all_of(llvm::predecessors(&block), [&](const llvm::BasicBlock* predecessor) {
           return is_ahead(*predecessor, block) && can_go_on(*predecessor);
         });
}

void WaitingMarks::find_wanted(const std::vector<StoreSite>& sites) {
  llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<llvm::Value*, 1>> stored;
  for (const StoreSite& site : sites) {
    if (!can_share_mark(site)) continue;
    const llvm::DataLayout& layout = site.instruction->getModule()->getDataLayout();
    stored[site.instruction].push_back(place_of(site.pointer, layout).object);
  }
  for (const llvm::BasicBlock* block : llvm::reverse(blocks_)) {
    Objects objects;
    const auto want = [&](llvm::Value* object) {
      if (objects.size() < kWantedMax) objects.insert(object);
    };
    for (const llvm::BasicBlock* successor : llvm::successors(block)) {
      if (!can_enter(*successor)) continue;
      for (llvm::Value* object : wanted_[successor]) want(object);
    }
    for (const llvm::Instruction& instruction : llvm::reverse(*block)) {
      if (is_barrier(instruction)) {
        objects.clear();
        continue;
      }
      const auto found = stored.find(&instruction);
      if (found != stored.end()) llvm::for_each(found->second, want);
    }
    wanted_[block] = std::move(objects);
  }
}

std::vector<WaitingMark> WaitingMarks::enter(llvm::BasicBlock& block) {
  std::vector<WaitingMark> waiting;
  if (!can_enter(block)) return waiting;
  const llvm::BasicBlock* const first = *llvm::pred_begin(&block);
  const bool is_joined = block.getUniquePredecessor() == nullptr;
  Objects decided;
  for (const WaitingMark& candidate : left_[first]) {
    llvm::Value* const object = candidate.object;
    if (!wanted_[&block].contains(object) || !decided.insert(object).second) continue;
    std::vector<WaitingMark> found;
    const bool is_everywhere =
        llvm::all_of(llvm::predecessors(&block), [&](const llvm::BasicBlock* predecessor) {
          const std::size_t before = found.size();
          llvm::copy_if(left_[predecessor], std::back_inserter(found),
                        [&](const WaitingMark& mark) { return mark.object == object; });
          return found.size() > before;
        });
    if (!is_everywhere || found.size() > kOfObjectMax) continue;
    for (WaitingMark& mark : found) mark.last = nullptr;
    if (is_joined) {
      WaitingMark whole = found.front();
      for (const WaitingMark& mark : found) {
        whole.first = std::min(whole.first, mark.first);
        whole.end = std::max(whole.end, mark.end);
      }
      if (whole.end - whole.first > kJoinedMax) continue;
      found = {whole};
    }
    entered_[&block].insert(object);
    llvm::append_range(waiting, found);
  }
  return waiting;
}

void WaitingMarks::leave(llvm::BasicBlock& block, std::vector<WaitingMark> waiting) {
  left_[&block] = std::move(waiting);
}

Mark WaitingMarks::settle(const WaitingMark& waiting, llvm::BasicBlock& block) {
  Mark mark;
  mark.before =
      waiting.last != nullptr ? waiting.last->getNextNode() : &*block.getFirstInsertionPt();
  mark.pointer = waiting.object;
  mark.offset = waiting.first;
  mark.length =
      constant_length(block.getContext(), static_cast<std::uint64_t>(waiting.end - waiting.first));
  return mark;
}

void WaitingMarks::take_marks(std::vector<Mark>& marks) const {
  for (llvm::BasicBlock* block : blocks_) {
    llvm::Instruction* const end = block->getTerminator();
    for (const WaitingMark& waiting : left_.lookup(block)) {
      const auto goes_on = [&](const llvm::BasicBlock* successor) {
        const auto entered = entered_.find(successor);
        return entered != entered_.end() && entered->second.contains(waiting.object);
      };
      if (llvm::none_of(llvm::successors(block), goes_on)) {
        marks.push_back(settle(waiting, *block));
        continue;
      }
      llvm::SmallPtrSet<const llvm::BasicBlock*, 4> seen;
      for (unsigned i = 0; i < end->getNumSuccessors(); ++i) {
        const llvm::BasicBlock* const successor = end->getSuccessor(i);
        if (!seen.insert(successor).second || goes_on(successor)) continue;
        Mark mark = settle(waiting, *block);
        mark.before = nullptr;
        mark.leaving = end;
        mark.successor = i;
        marks.push_back(mark);
      }
    }
  }
}

}  // namespace pawl::compiler
