#include "cutting.h"

#include <algorithm>
#include <map>
#include <optional>

#include "accesses.h"
#include "callees.h"
#include "diagnostics.h"
#include "faults.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "scheme.h"

namespace pawl::compiler::fase {
namespace {

// Cuts that are tried one by one for whether the others do without them.
constexpr std::size_t kCutsTriedMax = 200;

// What is so on some way to a point.
struct State {
  bool is_reached = false;
  bool lacks_cut = false;  // since the last end of a region
  llvm::BitVector reads;   // since the last cut

  bool join(const State& other) {
    if (!other.is_reached) return false;
    const bool is_new = !is_reached || (other.lacks_cut && !lacks_cut) || other.reads.test(reads);
    is_reached = true;
    lacks_cut |= other.lacks_cut;
    reads |= other.reads;
    return is_new;
  }
};

// Why a write must not be in the region that it is in.
struct Violation {
  bool lacks_cut = false;
  std::vector<const llvm::Instruction*> reads;
};

class Cutter {
 public:
  Cutter(llvm::Function& function, const Sections& sections,
         llvm::FunctionAnalysisManager& analyses)
      : function_(function),
        sections_(sections),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        escapes_(analyses.getResult<llvm::DominatorTreeAnalysis>(function), &loops_),
        aliases_(analyses.getResult<llvm::AAManager>(function), &escapes_),
        order_(&function) {
    // One instruction is many executions, in loops.
    if (!has_fault("turns")) aliases_.enableCrossIterationMode();
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (sections.before(instruction) == Inside::kNever) continue;
      if (is_read(instruction)) {
        numbers_[&instruction] = static_cast<unsigned>(reads_.size());
        reads_.push_back(&instruction);
      }
      if (sections.ends_region(instruction)) {
        for (const llvm::Loop* loop = loops_.getLoopFor(instruction.getParent()); loop != nullptr;
             loop = loop->getParentLoop()) {
          loops_with_ends_.insert(loop);
        }
      }
    }
  }

  std::vector<Cut> run() {
    while (add_cuts()) {
    }
    drop_needless();
    std::vector<Cut> cuts;
    for (llvm::Instruction& instruction : llvm::instructions(function_)) {
      const auto found = cuts_.find(&instruction);
      if (found != cuts_.end()) cuts.push_back({&instruction, found->second});
    }
    drop_cut(cuts);
    return cuts;
  }

 private:
  bool is_read(const llvm::Instruction& instruction) const {
    return (may_read(instruction) && !sections_.ends_region(instruction)) ||
           reads_root(instruction);
  }

  // False when the write comes before the cut that the read would be an input of: it reads what
  // this region wrote itself.
  static bool is_covered(const llvm::Instruction& read,
                         const std::vector<const llvm::StoreInst*>& written) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&read);
    if (load == nullptr) return false;
    const llvm::DataLayout& layout = load->getModule()->getDataLayout();
    return llvm::any_of(written, [&](const llvm::StoreInst* store) {
      return store->getPointerOperand() == load->getPointerOperand() &&
             layout.getTypeStoreSize(store->getValueOperand()->getType()).getKnownMinValue() >=
                 layout.getTypeStoreSize(load->getType()).getKnownMinValue();
    });
  }

  // Facts that hold within one call of an inlined function only are left out: scopes in loops are
  // of one turn.
  static llvm::MemoryLocation for_all_turns(llvm::MemoryLocation location) {
    location.AATags.Scope = nullptr;
    location.AATags.NoAlias = nullptr;
    return location;
  }

  bool may_read_from(const llvm::Instruction& read, const llvm::MemoryLocation& written) {
    if (const std::optional<llvm::MemoryLocation> location = location_read(read)) {
      return aliases_.alias(for_all_turns(*location), written) != llvm::AliasResult::NoAlias;
    }
    return llvm::isRefSet(aliases_.getModRefInfo(&read, written));
  }

  std::optional<Violation> violation(llvm::Instruction& instruction, const State& state) {
    if (sections_.before(instruction) == Inside::kNever) return std::nullopt;
    if (sets_root(instruction)) return violation_of_root(state);
    const std::optional<Write> write = write_of(instruction);
    if (!write || write->provenance == Provenance::kVolatile) return std::nullopt;
    Violation found;
    found.lacks_cut = state.lacks_cut;
    const llvm::MemoryLocation written = for_all_turns(location_of(instruction, *write));
    for (const unsigned read : state.reads.set_bits()) {
      if (reads_root(*reads_[read])) continue;
      if (may_read_from(*reads_[read], written)) found.reads.push_back(reads_[read]);
    }
    if (!found.lacks_cut && found.reads.empty()) return std::nullopt;
    return found;
  }

  // Only pawl_fase_root() reads what pawl_fase_set_root() writes.
  std::optional<Violation> violation_of_root(const State& state) const {
    Violation found;
    found.lacks_cut = state.lacks_cut;
    for (const unsigned read : state.reads.set_bits()) {
      if (reads_root(*reads_[read])) found.reads.push_back(reads_[read]);
    }
    if (!found.lacks_cut && found.reads.empty()) return std::nullopt;
    return found;
  }

  // The outermost loop around the write before which a cut is as good, or null.
  llvm::Instruction* place_before_loop(const llvm::Instruction& write, const Violation& violation) {
    llvm::Instruction* place = nullptr;
    for (const llvm::Loop* loop = loops_.getLoopFor(write.getParent()); loop != nullptr;
         loop = loop->getParentLoop()) {
      const bool reads_inside = llvm::any_of(
          violation.reads, [&](const llvm::Instruction* read) { return loop->contains(read); });
      llvm::BasicBlock* before = loop->getLoopPreheader();
      if (loops_with_ends_.contains(loop) || reads_inside || before == nullptr) break;
      llvm::Instruction* end = before->getTerminator();
      if (sections_.before(*end) == Inside::kNever || cuts_.contains(end)) break;
      place = end;
    }
    return place;
  }

  std::string reason(const llvm::Instruction& write, const Violation& violation) const {
    if (!violation.reads.empty()) {
      return "what " + line_text(*violation.reads.front()) + " has read, " + line_text(write) +
             " may write";
    }
    return line_text(write) + " writes";
  }

  // Goes through the block; `is_final` is false while cuts are still looked for.  False when it
  // stops at a violation that a cut before a loop has mended.
  bool walk(llvm::BasicBlock& block, State& state, bool adds) {
    std::vector<const llvm::StoreInst*> written;
    for (llvm::Instruction& instruction : block) {
      if (cuts_.contains(&instruction)) {
        start_region(state, written);
      } else if (const std::optional<Violation> found = violation(instruction, state)) {
        if (!adds) return false;
        if (llvm::Instruction* place = place_before_loop(instruction, *found)) {
          cuts_[place] = reason(instruction, *found);
          return false;
        }
        cuts_[&instruction] = reason(instruction, *found);
        start_region(state, written);
      }
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        written.push_back(store);
      }
      const auto number = numbers_.find(&instruction);
      if (number != numbers_.end() && !is_covered(instruction, written) && !has_fault("reads")) {
        state.reads.set(number->second);
      }
      if (sections_.ends_region(instruction) && !(has_fault("calls") && is_call(instruction))) {
        start_region(state, written);
        state.lacks_cut = true;
      }
    }
    return true;
  }

  static bool is_call(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call != nullptr && callee_of(*call) != Callee::kLock;
  }

  static void start_region(State& state, std::vector<const llvm::StoreInst*>& written) {
    state.lacks_cut = false;
    state.reads.reset();
    written.clear();
  }

  bool is_next_turn(const llvm::BasicBlock& block, const llvm::BasicBlock& successor) const {
    const llvm::Loop* loop = loops_.getLoopFor(&successor);
    return loop != nullptr && loop->getHeader() == &successor && loop->contains(&block);
  }

  // To the fixed point of the states.  False when it stops at a violation (see walk()).
  bool flow(bool adds) {
    std::map<const llvm::BasicBlock*, State> entries;
    State& first = entries[&function_.getEntryBlock()];
    first.is_reached = true;
    first.lacks_cut = true;
    first.reads.resize(static_cast<unsigned>(reads_.size()));
    for (bool changed = true; changed;) {
      changed = false;
      for (llvm::BasicBlock* block : order_) {
        State state = entries[block];
        if (!state.is_reached) continue;
        if (!walk(*block, state, adds)) return false;
        for (llvm::BasicBlock* successor : llvm::successors(block)) {
          State& entry = entries[successor];
          entry.reads.resize(static_cast<unsigned>(reads_.size()));
          if (has_fault("loops") && is_next_turn(*block, *successor)) continue;
          changed |= entry.join(state);
        }
      }
    }
    return true;
  }

  // True when it is to be called again.  Each time there is one cut more before a loop.
  bool add_cuts() { return !flow(/*adds=*/true); }

  void drop_needless() {
    if (cuts_.size() > kCutsTriedMax) return;
    // Those before loops first: they were added in the hope that the loop needs no other.
    std::vector<llvm::Instruction*> places;
    for (const bool is_before_loop : {true, false}) {
      for (llvm::Instruction& instruction : llvm::instructions(function_)) {
        const bool is_wanted = instruction.isTerminator() == is_before_loop;
        if (is_wanted && cuts_.contains(&instruction)) places.push_back(&instruction);
      }
    }
    for (llvm::Instruction* place : places) {
      const std::string why = cuts_[place];
      cuts_.erase(place);
      if (!flow(/*adds=*/false)) cuts_[place] = why;
    }
  }

  llvm::Function& function_;
  const Sections& sections_;
  llvm::LoopInfo& loops_;
  llvm::EarliestEscapeInfo escapes_;
  llvm::BatchAAResults aliases_;
  llvm::ReversePostOrderTraversal<llvm::Function*> order_;
  std::vector<const llvm::Instruction*> reads_;
  llvm::DenseMap<const llvm::Instruction*, unsigned> numbers_;
  llvm::DenseSet<const llvm::Loop*> loops_with_ends_;
  std::map<const llvm::Instruction*, std::string> cuts_;
};

// JUSTDO's: each store is a region.
std::vector<Cut> cuts_before_stores(llvm::Function& function, const Sections& sections) {
  std::vector<Cut> cuts;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (sections.before(instruction) == Inside::kNever) continue;
    const std::optional<Write> write = write_of(instruction);
    if (!write || write->provenance == Provenance::kVolatile) continue;
    cuts.push_back({&instruction, line_text(instruction) + " writes"});
  }
  return cuts;
}

}  // namespace

std::vector<Cut> find_cuts(llvm::Function& function, const Sections& sections,
                           llvm::FunctionAnalysisManager& analyses) {
  const bool is_outside =
      sections.entry(function) == Inside::kNever && !sections.locks(function).takes_any();
  if (is_outside) return {};
  if (scheme() == Scheme::kJustdo) return cuts_before_stores(function, sections);
  return Cutter(function, sections, analyses).run();
}

}  // namespace pawl::compiler::fase
