#include "coalesce.h"

#include <utility>

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/Module.h"
#include "near_stores.h"
#include "waiting_marks.h"

namespace pawl::compiler {
namespace {

constexpr std::size_t kOpenGroupsMax = 16;  // of a block at a time

class Block {
 public:
  Block(llvm::BasicBlock& block, llvm::ScalarEvolution& evolution, std::vector<WaitingMark> waiting,
        std::vector<Mark>& marks)
      : block_(block), evolution_(evolution), waiting_(std::move(waiting)), marks_(marks) {}

  void add(const StoreSite& site) {
    if (!can_share_mark(site)) {
      if (site.both_sides) marks_.push_back(mark_before(site));
      marks_.push_back(mark_after(site));
      return;
    }
    for (NearStores& group : open_) {
      if (group.take(site, evolution_)) return;
    }
    if (open_.size() == kOpenGroupsMax) flush();
    open_.emplace_back(site);
  }

  // All that was stored gets its mark.
  void flush() {
    for (const WaitingMark& waiting : take_waiting())
      marks_.push_back(WaitingMarks::settle(waiting, block_));
  }

  // What has not got its mark yet.
  std::vector<WaitingMark> take_waiting() {
    for (const NearStores& group : open_) wait(group);
    open_.clear();
    return std::exchange(waiting_, {});
  }

 private:
  void wait(const NearStores& group) {
    const llvm::DataLayout& layout = group.last()->getModule()->getDataLayout();
    const Place place = place_of(group.lowest().pointer, layout);
    const WaitingMark mark{place.object, place.offset, place.offset + group.bytes(), group.last()};
    for (WaitingMark& waiting : waiting_) {
      if (waiting.take(mark)) return;
    }
    waiting_.push_back(mark);
  }

  llvm::BasicBlock& block_;
  llvm::ScalarEvolution& evolution_;
  std::vector<WaitingMark> waiting_;
  std::vector<Mark>& marks_;
  std::vector<NearStores> open_;
};

}  // namespace

void mark_sites(llvm::Function& function, const std::vector<StoreSite>& sites,
                llvm::ScalarEvolution& evolution, std::vector<Mark>& marks) {
  llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<const StoreSite*, 1>> sites_of;
  for (const StoreSite& site : sites) sites_of[site.instruction].push_back(&site);
  WaitingMarks waiting(function, sites);
  for (llvm::BasicBlock* block : waiting.blocks()) {
    Block marker(*block, evolution, waiting.enter(*block), marks);
    for (const llvm::Instruction& instruction : *block) {
      const bool orders = is_barrier(instruction);
      // A volatile store is a barrier itself, for what was stored before, and for what follows.
      if (orders) marker.flush();
      for (const StoreSite* site : sites_of.lookup(&instruction)) marker.add(*site);
      if (orders) marker.flush();
    }
    waiting.leave(*block, marker.take_waiting());
  }
  waiting.take_marks(marks);
}

}  // namespace pawl::compiler
