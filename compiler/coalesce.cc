#include "coalesce.h"

#include "llvm/IR/BasicBlock.h"
#include "near_stores.h"

namespace pawl::compiler {
namespace {

constexpr std::size_t kOpenGroupsMax = 16;  // of a block at a time

class Block {
 public:
  Block(llvm::ScalarEvolution& evolution, std::vector<Mark>& marks)
      : evolution_(evolution), marks_(marks) {}

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
    for (const NearStores& group : open_) {
      StoreSite whole = group.lowest();
      whole.instruction = group.last();
      whole.bytes = static_cast<std::uint64_t>(group.bytes());
      marks_.push_back(mark_after(whole));
    }
    open_.clear();
  }

 private:
  llvm::ScalarEvolution& evolution_;
  std::vector<Mark>& marks_;
  std::vector<NearStores> open_;
};

}  // namespace

void mark_sites(const std::vector<StoreSite>& sites, llvm::ScalarEvolution& evolution,
                std::vector<Mark>& marks) {
  Block block(evolution, marks);
  const llvm::Instruction* previous = nullptr;
  for (const StoreSite& site : sites) {
    const llvm::Instruction* instruction = site.instruction;
    if (previous == nullptr || previous->getParent() != instruction->getParent()) {
      block.flush();
      previous = nullptr;
    }
    // A volatile store is a barrier itself, for what was stored before.
    for (const llvm::Instruction* between = previous == nullptr ? instruction : previous;
         between != nullptr; between = between->getNextNode()) {
      if (between != previous && is_barrier(*between)) block.flush();
      if (between == instruction) break;
    }
    block.add(site);
    // And for what follows.
    if (is_barrier(*instruction)) block.flush();
    previous = instruction;
  }
  block.flush();
}

}  // namespace pawl::compiler
