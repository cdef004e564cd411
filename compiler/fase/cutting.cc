#include "cutting.h"

#include <algorithm>
#include <map>
#include <optional>

#include "accesses.h"
#include "callees.h"
#include "cut_state.h"
#include "diagnostics.h"
#include "faults.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "scheme.h"
#include "window.h"

namespace pawl::compiler::fase {
namespace {

// Cuts that are tried one by one for whether the others do without them.
constexpr std::size_t kCutsTriedMax = 200;

// Objects that cuts may ask for; writes to further ones have cuts that ask nothing.
constexpr std::size_t kObjectsMax = 16;

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
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        escapes_(dominators_, &loops_),
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
      note_object(instruction);
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
    make_conditional();
    std::vector<Cut> cuts;
    for (llvm::Instruction& instruction : llvm::instructions(function_)) {
      const auto found = cuts_.find(&instruction);
      if (found == cuts_.end()) continue;
      Cut& cut = cuts.emplace_back(Cut{&instruction, found->second.why, {}});
      for (const unsigned object : found->second.objects) {
        cut.only_for.push_back(objects_[object - 1]);
      }
    }
    drop_cut(cuts);
    return cuts;
  }

 private:
  struct Planned {
    std::string why;
    llvm::SmallVector<unsigned, 4> objects = {};  // made only if one is persistent; empty: always
  };

  void note_object(llvm::Instruction& instruction) {
    const std::optional<Write> write = write_of(instruction);
    if (!write || write->provenance != Provenance::kUnknown) return;
    llvm::Value* object = object_of_address(write->pointer);
    // Of an address that is a number there is nothing to ask.
    if (llvm::isa<llvm::Constant>(object) || object_numbers_.contains(object)) return;
    if (objects_.size() == kObjectsMax) return;
    objects_.push_back(object);
    object_numbers_[object] = static_cast<unsigned>(objects_.size());
  }

  // Of a write that is one only if the object is persistent.
  unsigned object_number(const Write& write) const {
    if (write.provenance != Provenance::kUnknown) return CutState::kAnyObject;
    return object_numbers_.lookup(object_of_address(write.pointer));
  }

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

  std::optional<Violation> violation(llvm::Instruction& instruction, const CutState& state) {
    if (sections_.before(instruction) == Inside::kNever) return std::nullopt;
    if (sets_root(instruction)) return violation_of_root(state.since(CutState::kAnyObject));
    const std::optional<Write> write = write_of(instruction);
    if (!write || write->provenance == Provenance::kVolatile) return std::nullopt;
    const SinceCut& since = state.since(object_number(*write));
    Violation found;
    found.lacks_cut = since.lacks_cut;
    const llvm::MemoryLocation written = for_all_turns(location_of(instruction, *write));
    for (const unsigned read : since.reads.set_bits()) {
      if (reads_root(*reads_[read])) continue;
      if (may_read_from(*reads_[read], written)) found.reads.push_back(reads_[read]);
    }
    if (!found.lacks_cut && found.reads.empty()) return std::nullopt;
    return found;
  }

  // Only pawl_fase_root() reads what pawl_fase_set_root() writes.
  std::optional<Violation> violation_of_root(const SinceCut& since) const {
    Violation found;
    found.lacks_cut = since.lacks_cut;
    for (const unsigned read : since.reads.set_bits()) {
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
  bool walk(llvm::BasicBlock& block, CutState& state, bool adds) {
    std::vector<const llvm::StoreInst*> written;
    for (llvm::Instruction& instruction : block) {
      if (const auto cut = cuts_.find(&instruction); cut != cuts_.end()) {
        start_region(cut->second, state);
        written.clear();
      }
      if (const std::optional<Violation> found = violation(instruction, state)) {
        if (!adds) return false;
        if (llvm::Instruction* place = place_before_loop(instruction, *found)) {
          cuts_[place] = {reason(instruction, *found)};
          return false;
        }
        cuts_[&instruction] = {reason(instruction, *found)};
        state.cut();
        written.clear();
      }
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        written.push_back(store);
      }
      const auto number = numbers_.find(&instruction);
      if (number != numbers_.end() && !is_covered(instruction, written) && !has_fault("reads")) {
        state.read(number->second);
      }
      if (sections_.ends_region(instruction) && !(has_fault("calls") && is_call(instruction))) {
        state.end_region();
        written.clear();
      }
      if (const unsigned object = object_numbers_.lookup(&instruction)) state.rename(object);
    }
    return true;
  }

  static bool is_call(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    return call != nullptr && callee_of(*call) != Callee::kLock;
  }

  static void start_region(const Planned& cut, CutState& state) {
    if (cut.objects.empty()) {
      state.cut();
    } else {
      state.cut_if_any(cut.objects);
    }
  }

  bool is_next_turn(const llvm::BasicBlock& block, const llvm::BasicBlock& successor) const {
    const llvm::Loop* loop = loops_.getLoopFor(&successor);
    return loop != nullptr && loop->getHeader() == &successor && loop->contains(&block);
  }

  // To the fixed point of the states.  False when it stops at a violation (see walk()).
  bool flow(bool adds) {
    std::map<const llvm::BasicBlock*, CutState> entries;
    entries[&function_.getEntryBlock()] = {static_cast<unsigned>(objects_.size()),
                                           static_cast<unsigned>(reads_.size())};
    for (bool changed = true; changed;) {
      changed = false;
      for (llvm::BasicBlock* block : order_) {
        CutState state = entries[block];
        if (!state.is_reached()) continue;
        if (!walk(*block, state, adds)) return false;
        for (llvm::BasicBlock* successor : llvm::successors(block)) {
          if (has_fault("loops") && is_next_turn(*block, *successor)) continue;
          changed |= entries[successor].join(state);
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
      Planned cut = cuts_[place];
      cuts_.erase(place);
      if (!flow(/*adds=*/false)) cuts_[place] = std::move(cut);
    }
  }

  // Whether the object can be asked for before the instruction: it is known there, and asking is
  // no error even where nothing is written to it.
  bool can_be_asked(llvm::Value* object, llvm::Instruction& place) const {
    if (!dominators_.dominates(object, &place)) return false;
    const std::optional<Write> write = write_of(place);
    return (write && object_of_address(write->pointer) == object) ||
           llvm::isGuaranteedNotToBeUndefOrPoison(object, nullptr, &place, &dominators_);
  }

  // Cuts that only writes to memory need of which nobody knows whether it is persistent, such as
  // the caller's `*result`: they are made if it is.
  void make_conditional() {
    if (cuts_.size() > kCutsTriedMax) return;
    for (llvm::Instruction& place : llvm::instructions(function_)) {
      const auto cut = cuts_.find(&place);
      if (cut == cuts_.end()) continue;
      auto& asked = cut->second.objects;
      for (llvm::Value* object : objects_) {
        if (can_be_asked(object, place)) asked.push_back(object_numbers_.lookup(object));
      }
      if (asked.empty()) continue;
      if (has_fault("objects")) {
        asked.resize(1);
        continue;
      }
      if (!flow(/*adds=*/false)) {
        asked.clear();
        continue;
      }
      for (std::size_t i = asked.size(); i-- > 0 && asked.size() > 1;) {
        const unsigned object = asked[i];
        asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(i));
        if (!flow(/*adds=*/false)) {
          asked.insert(asked.begin() + static_cast<std::ptrdiff_t>(i), object);
        }
      }
    }
  }

  llvm::Function& function_;
  const Sections& sections_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::EarliestEscapeInfo escapes_;
  llvm::BatchAAResults aliases_;
  llvm::ReversePostOrderTraversal<llvm::Function*> order_;
  std::vector<const llvm::Instruction*> reads_;
  llvm::DenseMap<const llvm::Instruction*, unsigned> numbers_;
  llvm::DenseSet<const llvm::Loop*> loops_with_ends_;
  std::vector<llvm::Value*> objects_;
  llvm::DenseMap<const llvm::Value*, unsigned> object_numbers_;  // from 1 on
  std::map<const llvm::Instruction*, Planned> cuts_;
};

// JUSTDO's: each store is a region.
std::vector<Cut> cuts_before_stores(llvm::Function& function, const Sections& sections) {
  std::vector<Cut> cuts;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (sections.before(instruction) == Inside::kNever) continue;
    const std::optional<Write> write = write_of(instruction);
    const bool is_write = write && write->provenance != Provenance::kVolatile;
    if (!is_write && !sets_root(instruction)) continue;
    Cut& cut = cuts.emplace_back(Cut{&instruction, line_text(instruction) + " writes", {}});
    if (!is_write) continue;
    llvm::Value* object = object_of_address(write->pointer);
    const bool is_to_ask = write->provenance == Provenance::kUnknown;
    if (is_to_ask && !llvm::isa<llvm::Constant>(object)) cut.only_for.push_back(object);
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
