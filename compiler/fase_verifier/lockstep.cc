#include "lockstep.h"

#include <set>
#include <tuple>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/raw_ostream.h"
#include "memory.h"
#include "report.h"

namespace pawl::compiler::fase_verifier {
namespace {

constexpr unsigned kTermDepthMax = 64;

// A value: something that was there before, or an operation on others.
struct Term {
  enum class Kind {
    kLogged,    // what the function had when it logged: `value` is its name there
    kConstant,  // `value`
    kResult,    // of the effect with the number `number`
    kOperation,
    kUnknown,  // each is another one
  };
  Kind kind = Kind::kUnknown;
  const llvm::Value* value = nullptr;
  std::uint64_t number = 0;
  std::string operation{};
  std::vector<unsigned> operands{};

  auto key() const { return std::tie(kind, value, number, operation, operands); }
  bool operator<(const Term& other) const { return key() < other.key(); }
};

class Terms {
 public:
  unsigned make(Term term) {
    if (term.kind == Term::Kind::kUnknown) term.number = terms_.size();
    const auto [place, is_new] = numbers_.try_emplace(term, terms_.size());
    if (is_new) terms_.push_back(term);
    return place->second;
  }
  const Term& operator[](unsigned number) const { return terms_[number]; }

  // Two terms of which a part is unknown may be the same though they look different.
  bool is_known(unsigned number) const {
    const Term& term = terms_[number];
    return term.kind != Term::Kind::kUnknown &&
           llvm::all_of(term.operands, [&](unsigned operand) { return is_known(operand); });
  }

  // Never the same value, but by chance.
  bool are_different(unsigned first, unsigned second) const {
    if (first == second) return false;
    const Term& one = terms_[first];
    const Term& other = terms_[second];
    const auto is_atom = [](const Term& term) {
      return term.kind == Term::Kind::kLogged || term.kind == Term::Kind::kConstant ||
             term.kind == Term::Kind::kResult;
    };
    if (is_atom(one) && is_atom(other)) return true;
    if (!is_known(first) || !is_known(second)) return false;
    if (one.kind != Term::Kind::kOperation || other.kind != Term::Kind::kOperation) return false;
    if (one.operation != other.operation || one.operands.size() != other.operands.size()) {
      return false;
    }
    // Elsewhere may be the same.
    if (llvm::StringRef(one.operation).starts_with("load")) return false;
    if (one.number != other.number) return false;
    unsigned differences = 0;
    for (unsigned i = 0; i < one.operands.size(); ++i) {
      if (one.operands[i] == other.operands[i]) continue;
      if (!are_different(one.operands[i], other.operands[i])) return false;
      ++differences;
    }
    // Of two differences the one may undo the other.
    return differences == 1;
  }

 private:
  std::vector<Term> terms_;
  std::map<Term, unsigned> numbers_;
};

using Values = llvm::DenseMap<const llvm::Value*, unsigned>;

// One of the two, on its way.
struct Side {
  const llvm::Instruction* at = nullptr;
  const llvm::BasicBlock* from = nullptr;
  Values values;
};

struct Pair {
  Side function;
  Side resume;
  std::map<unsigned, bool> decided;  // conditions on this way
  std::uint64_t effects = 0;
};

class Lockstep {
 public:
  Lockstep(const Frame& frame, const llvm::Function& resume, std::uint64_t region,
           const Slots& logged, const ModuleFacts& facts)
      : frame_(frame), resume_(resume), region_(region), logged_(logged), facts_(facts) {}

  std::optional<std::string> run() {
    Pair first;
    first.function.at = beginning();
    if (first.function.at == nullptr) return std::nullopt;
    first.resume.at = &resume_.getEntryBlock().front();
    know_ways_to_frame(first);
    open_.push_back(std::move(first));
    while (!open_.empty() && !difference_.has_value() && steps_ < kLockstepStepsMax) {
      Pair pair = std::move(open_.back());
      open_.pop_back();
      follow(std::move(pair));
    }
    return difference_;
  }

 private:
  // Behind the frame's call, or behind the call that it announces.
  const llvm::Instruction* beginning() const {
    const llvm::Instruction* at = frame_.call->getNextNode();
    if (abi_call(*frame_.call) != AbiCall::kCallFrame) return at;
    while (at != nullptr && abi_call(*at) != AbiCall::kReturn) {
      if (llvm::isa<llvm::InvokeInst>(at)) return nullptr;
      at = at->getNextNode();
    }
    return at == nullptr ? nullptr : at->getNextNode();
  }

  // The conditions of branches behind which the frame lies: where its values were stored they may
  // stand as constants, and so the resume form may go one way only.
  void know_ways_to_frame(Pair& pair) {
    const llvm::BasicBlock& block = *frame_.call->getParent();
    const llvm::DominatorTree tree(const_cast<llvm::Function&>(*block.getParent()));
    for (const llvm::DomTreeNode* node = tree.getNode(&block); node != nullptr;
         node = node->getIDom()) {
      const llvm::BasicBlock* before = node->getBlock()->getSinglePredecessor();
      if (before == nullptr) continue;
      const auto* branch = llvm::dyn_cast<llvm::BranchInst>(before->getTerminator());
      if (branch == nullptr || branch->isUnconditional()) continue;
      const auto [condition, value] =
          plain(term_of(branch->getCondition(), pair.function, /*is_resume=*/false));
      const bool is_true = branch->getSuccessor(0) == node->getBlock();
      if (terms_.is_known(condition)) pair.decided.try_emplace(condition, is_true == value);
    }
  }

  unsigned term_of(const llvm::Value* value, Side& side, bool is_resume, unsigned depth = 0) {
    if (const auto found = side.values.find(value); found != side.values.end()) {
      return found->second;
    }
    if (llvm::isa<llvm::UndefValue>(value)) return terms_.make({});
    if (const auto* expression = llvm::dyn_cast<llvm::ConstantExpr>(value)) {
      (void)expression;
      return terms_.make({});
    }
    if (llvm::isa<llvm::Constant>(value)) {
      return terms_.make({.kind = Term::Kind::kConstant, .value = value});
    }
    unsigned made = 0;
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    const bool is_old = !is_resume && depth < kTermDepthMax;
    if (is_old && is_logged(value)) {
      made = logged(value);
    } else if (is_old && instruction != nullptr && is_pure(*instruction)) {
      // Computed before the region began, and anew in the resume form.
      made = operation(*instruction, side, is_resume, depth + 1);
    } else {
      made = terms_.make({});
    }
    side.values[value] = made;
    return made;
  }

  bool is_logged(const llvm::Value* value) const {
    for (const auto& [offset, slot] : logged_) {
      if (slot.type != nullptr && slot.value == value) return true;
    }
    return false;
  }

  static bool is_pure(const llvm::Instruction& instruction) {
    return llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::CmpInst, llvm::SelectInst,
                     llvm::GetElementPtrInst, llvm::FreezeInst, llvm::UnaryOperator>(instruction);
  }

  unsigned operation(const llvm::Instruction& instruction, Side& side, bool is_resume,
                     unsigned depth) {
    if (llvm::isa<llvm::FreezeInst>(instruction)) {
      return term_of(instruction.getOperand(0), side, is_resume, depth);
    }
    Term term{.kind = Term::Kind::kOperation, .operation = instruction.getOpcodeName()};
    if (llvm::isa<llvm::GetElementPtrInst>(instruction)) {
      const Place place = place_of(&instruction, instruction.getDataLayout());
      if (place.base == &instruction) {
        // Of types that may be written in several ways.
        term.operation += std::to_string(instruction.getNumOperands());
        const auto& gep = llvm::cast<llvm::GetElementPtrInst>(instruction);
        if (gep.getNumIndices() != 1) return terms_.make({});
        term.number = instruction.getDataLayout().getTypeAllocSize(gep.getSourceElementType());
      } else {
        const unsigned base = term_of(place.base, side, is_resume, depth);
        if (place.offset == 0) return base;
        const Term& of = terms_[base];
        std::uint64_t offset = static_cast<std::uint64_t>(place.offset);
        unsigned root = base;
        if (of.kind == Term::Kind::kOperation && of.operation == "behind") {
          offset += of.number;
          root = of.operands[0];
        }
        if (offset == 0) return root;
        return terms_.make({.kind = Term::Kind::kOperation,
                            .number = offset,
                            .operation = "behind",
                            .operands = {root}});
      }
    }
    if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&instruction)) {
      term.number = compare->getPredicate();
    }
    // Casts of one kind differ in what they lead to.
    if (instruction.getType()->isIntegerTy()) {
      term.operation += "i" + std::to_string(instruction.getType()->getIntegerBitWidth());
    }
    for (const llvm::Value* operand : instruction.operands()) {
      term.operands.push_back(term_of(operand, side, is_resume, depth));
    }
    return terms_.make(std::move(term));
  }

  // Goes on to the next effect, branch that is not decided, or end.  Null: nothing more to compare.
  const llvm::Instruction* advance(Side& side, bool is_resume, Pair& pair) {
    while (steps_++ < kLockstepStepsMax) {
      const llvm::Instruction& at = *side.at;
      if (at.isTerminator()) {
        const llvm::BasicBlock* next = next_block(at, side, is_resume, pair);
        if (next == nullptr) return &at;
        enter(side, *next, is_resume);
        continue;
      }
      if (is_effect(at, side, is_resume)) return &at;
      evaluate(at, side, is_resume, pair.effects);
      side.at = at.getNextNode();
    }
    return nullptr;
  }

  const llvm::BasicBlock* next_block(const llvm::Instruction& at, Side& side, bool is_resume,
                                     const Pair& pair) {
    if (is_resume) {
      if (const llvm::BasicBlock* only = chosen(*at.getParent(), region_)) return only;
    }
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(&at);
    if (branch == nullptr) return nullptr;
    if (branch->isUnconditional()) return branch->getSuccessor(0);
    const auto value = decided(term_of(branch->getCondition(), side, is_resume), pair);
    if (!value.has_value()) return nullptr;
    return branch->getSuccessor(*value ? 0 : 1);
  }

  // A condition and its negation are one.
  std::pair<unsigned, bool> plain(unsigned condition) const {
    const Term& term = terms_[condition];
    if (term.kind != Term::Kind::kOperation || term.operation != "xori1") return {condition, true};
    const Term& with = terms_[term.operands[1]];
    const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(with.value);
    if (constant == nullptr || !constant->isOne()) return {condition, true};
    const auto [inner, value] = plain(term.operands[0]);
    return {inner, !value};
  }

  std::optional<bool> decided(unsigned condition, const Pair& pair) const {
    const auto [inner, value] = plain(condition);
    if (const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(terms_[inner].value)) {
      if (terms_[inner].kind == Term::Kind::kConstant) return constant->isOne() == value;
    }
    const auto found = pair.decided.find(inner);
    if (found == pair.decided.end()) return std::nullopt;
    return found->second == value;
  }

  void enter(Side& side, const llvm::BasicBlock& block, bool is_resume) {
    const llvm::BasicBlock* from = side.at->getParent();
    std::vector<std::pair<const llvm::Value*, unsigned>> phis;
    for (const llvm::PHINode& phi : block.phis()) {
      phis.emplace_back(&phi, term_of(phi.getIncomingValueForBlock(from), side, is_resume));
    }
    for (const auto& [phi, term] : phis) side.values[phi] = term;
    side.at = &*block.getFirstNonPHIIt();
  }

  bool is_of_frame(const llvm::Value* pointer, const llvm::Instruction& at, bool is_resume) const {
    const llvm::Value* base = place_of(pointer, at.getDataLayout()).base;
    return llvm::isa<llvm::AllocaInst>(base) || (is_resume && llvm::isa<llvm::Argument>(base));
  }

  bool is_effect(const llvm::Instruction& at, const Side&, bool is_resume) const {
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&at)) {
      return !is_of_frame(store->getPointerOperand(), at, is_resume);
    }
    if (const auto* move = llvm::dyn_cast<llvm::MemIntrinsic>(&at)) {
      return !is_of_frame(move->getRawDest(), at, is_resume);
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&at);
    return call != nullptr && foreign(*call) != Foreign::kNothing;
  }

  void evaluate(const llvm::Instruction& at, Side& side, bool is_resume, std::uint64_t effects) {
    if (at.getType()->isVoidTy()) return;
    if (is_pure(at)) {
      side.values[&at] = operation(at, side, is_resume, 0);
      return;
    }
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&at);
    if (load != nullptr && is_resume) {
      const Place place = place_of(load->getPointerOperand(), at.getDataLayout());
      const auto slot = logged_.find(static_cast<std::uint64_t>(place.offset));
      if (place.base == resume_.getArg(1) && slot != logged_.end() &&
          slot->second.type != nullptr) {
        side.values[&at] = logged(slot->second.value);
        return;
      }
    }
    if (load == nullptr) {
      side.values[&at] = terms_.make({});
      return;
    }
    if (!is_resume && kept(*load) != nullptr) {
      side.values[&at] = logged(load);
      return;
    }
    // Between two effects memory does not change.
    const unsigned address = term_of(load->getPointerOperand(), side, is_resume);
    std::string operation = "load";
    llvm::raw_string_ostream(operation) << *at.getType();
    side.values[&at] = terms_.make({.kind = Term::Kind::kOperation,
                                    .number = effects,
                                    .operation = operation,
                                    .operands = {address}});
  }

  // What a variable of the program holds is the same wherever it is loaded; the first slot that has
  // it names it.  Null: it is in none.
  const llvm::Value* kept(const llvm::LoadInst& load) const {
    const auto* variable =
        llvm::dyn_cast<llvm::GlobalVariable>(object_of(load.getPointerOperand()));
    if (variable == nullptr || !facts_.is_told(*variable)) return nullptr;
    for (const auto& [offset, slot] : logged_) {
      const auto* stored = llvm::dyn_cast_or_null<llvm::LoadInst>(slot.value);
      if (slot.type != nullptr && stored != nullptr && stored->getType() == load.getType() &&
          stored->getPointerOperand() == load.getPointerOperand()) {
        return stored;
      }
    }
    return nullptr;
  }

  unsigned logged(const llvm::Value* value) {
    const bool is_constant = llvm::isa<llvm::Constant>(value);
    if (llvm::isa<llvm::UndefValue, llvm::ConstantExpr>(value)) return terms_.make({});
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(value)) {
      if (const llvm::Value* same = kept(*load)) value = same;
    }
    return terms_.make(
        {.kind = is_constant ? Term::Kind::kConstant : Term::Kind::kLogged, .value = value});
  }

  // True to go on.
  bool compare(const llvm::Instruction& of_function, const llvm::Instruction& of_resume,
               Pair& pair) {
    if (of_function.getOpcode() != of_resume.getOpcode() ||
        of_function.getNumOperands() != of_resume.getNumOperands()) {
      return false;
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&of_function);
    if (call != nullptr &&
        call->getCalledOperand() != llvm::cast<llvm::CallBase>(of_resume).getCalledOperand() &&
        llvm::isa<llvm::Constant>(call->getCalledOperand())) {
      return false;
    }
    for (unsigned i = 0; i < of_function.getNumOperands(); ++i) {
      const llvm::Value* one = of_function.getOperand(i);
      const llvm::Value* other = of_resume.getOperand(i);
      if (llvm::isa<llvm::BasicBlock, llvm::MetadataAsValue>(one)) continue;
      const unsigned first = term_of(one, pair.function, /*is_resume=*/false);
      const unsigned second = term_of(other, pair.resume, /*is_resume=*/true);
      if (!terms_.are_different(first, second)) continue;
      // Behind a branch its condition is a constant, to whom it was worth to be made one.
      const bool is_condition = one->getType()->isIntegerTy(1);
      if (is_condition && (decided(first, pair) == decided(second, pair) ||
                           !terms_.is_known(first) || !terms_.is_known(second))) {
        continue;
      }
      difference_ = "other values reach " + name_of(of_function);
      return false;
    }
    const unsigned result = terms_.make({.kind = Term::Kind::kResult, .number = ++pair.effects});
    if (!of_function.getType()->isVoidTy()) {
      pair.function.values[&of_function] = result;
      pair.resume.values[&of_resume] = result;
    }
    return true;
  }

  void follow(Pair pair) {
    while (steps_ < kLockstepStepsMax) {
      const llvm::Instruction* one = advance(pair.function, /*is_resume=*/false, pair);
      const llvm::Instruction* other = advance(pair.resume, /*is_resume=*/true, pair);
      if (one == nullptr || other == nullptr) return;
      if (split(*one, pair, pair.function, /*is_resume=*/false)) return;
      if (split(*other, pair, pair.resume, /*is_resume=*/true)) return;
      if (one->isTerminator() || other->isTerminator()) return;
      if (!known_.insert({one, other}).second) return;
      if (!compare(*one, *other, pair)) return;
      // From here the next frame counts, and its own resumption is compared by itself.
      pair.function.at = one->getNextNode();
      pair.resume.at = other->getNextNode();
    }
  }

  // A branch that is not decided yet: both ways, each with what it says.
  bool split(const llvm::Instruction& at, const Pair& pair, const Side& side, bool is_resume) {
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(&at);
    if (branch == nullptr || branch->isUnconditional()) return false;
    if (!known_.insert({&at, nullptr}).second) return true;
    Side copy = side;
    const auto [condition, value] = plain(term_of(branch->getCondition(), copy, is_resume));
    if (!terms_.is_known(condition)) return true;
    for (const bool is_true : {true, false}) {
      Pair next = pair;
      (is_resume ? next.resume : next.function).values = copy.values;
      next.decided[condition] = is_true == value;
      open_.push_back(std::move(next));
    }
    return true;
  }

  const Frame& frame_;
  const llvm::Function& resume_;
  const std::uint64_t region_;
  const Slots& logged_;
  const ModuleFacts& facts_;
  Terms terms_;
  std::vector<Pair> open_;
  std::set<std::pair<const llvm::Instruction*, const llvm::Instruction*>> known_;
  std::optional<std::string> difference_;
  unsigned steps_ = 0;
};

}  // namespace

std::optional<std::string> find_difference(const Frame& frame, const llvm::Function& resume,
                                           std::uint64_t region, const Slots& logged,
                                           const ModuleFacts& facts) {
  // Frames of the resume form itself are copies of the function's.
  if (frame.call->getFunction() == &resume) return std::nullopt;
  return Lockstep(frame, resume, region, logged, facts).run();
}

}  // namespace pawl::compiler::fase_verifier
