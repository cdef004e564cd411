#include "held_locks.h"

#include <algorithm>
#include <optional>

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownBits.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

using Facts = HeldLocks::Facts;
using States = HeldLocks::States;

// Facts that are kept of a way; further ones are forgotten.
constexpr std::size_t kFactsMax = 64;
// How far a condition is looked into.
constexpr unsigned kDepthMax = 4;

std::optional<bool> is_zero(const llvm::Value* value, const Facts& facts, unsigned depth = 0);

// Of a comparison with zero: what it compares, and whether it is true when that is zero.
struct ZeroTest {
  const llvm::Value* value;
  bool is_true_for_zero;
};
std::optional<ZeroTest> zero_test(const llvm::Value* condition) {
  using namespace llvm::PatternMatch;
  llvm::ICmpInst::Predicate predicate = llvm::CmpInst::BAD_ICMP_PREDICATE;
  const llvm::Value* value = nullptr;
  if (!match(condition, m_ICmp(predicate, m_Value(value), m_Zero()))) return std::nullopt;
  if (predicate == llvm::CmpInst::ICMP_EQ) return ZeroTest{value, true};
  if (predicate == llvm::CmpInst::ICMP_NE) return ZeroTest{value, false};
  return std::nullopt;
}

// Of a comparison with another number than zero, such as EBUSY: what it compares, and whether it is
// true only for that number.
struct NumberTest {
  const llvm::Value* value;
  bool is_for_equal;
};
std::optional<NumberTest> number_test(const llvm::Value* condition) {
  using namespace llvm::PatternMatch;
  llvm::ICmpInst::Predicate predicate = llvm::CmpInst::BAD_ICMP_PREDICATE;
  const llvm::Value* value = nullptr;
  llvm::ConstantInt* number = nullptr;
  if (!match(condition, m_ICmp(predicate, m_Value(value), m_ConstantInt(number)))) {
    return std::nullopt;
  }
  const bool is_one_number = llvm::ICmpInst::isEquality(predicate) && !number->isZero();
  return is_one_number ? std::optional(NumberTest{value, predicate == llvm::CmpInst::ICMP_EQ})
                       : std::nullopt;
}

// True of a lock whose failure the program knows by `tests` tests for certain numbers alone, as
// std::shared_mutex does: with any other (the lock is none) it goes on as if it had the lock.  That
// way is not looked at: it is the one with the lock, on which more is held.  The run-time counts
// what the call really returned.
bool is_asked_by_number(const llvm::Value& result, unsigned tests) {
  const std::optional<LockOperation> operation = lock_operation(result);
  const bool takes =
      operation == LockOperation::kAcquire || operation == LockOperation::kTryAcquire;
  return takes && result.hasNUses(tests) && llvm::all_of(result.users(), [](const auto* user) {
           if (const auto* choice = llvm::dyn_cast<llvm::SwitchInst>(user)) {
             return llvm::none_of(choice->cases(),
                                  [](const auto& known) { return known.getCaseValue()->isZero(); });
           }
           return number_test(user).has_value();
         });
}

// True when both are tests for equality, or both for inequality, of what failed so, and all that
// there are.
bool ask_for_all_numbers(const llvm::Value* left, const llvm::Value* right, bool are_for_equal,
                         const Facts& facts) {
  const std::optional<NumberTest> first = number_test(left);
  const std::optional<NumberTest> second = number_test(right);
  if (!first || !second || left == right || first->value != second->value) return false;
  if (first->is_for_equal != are_for_equal || second->is_for_equal != are_for_equal) return false;
  const auto known = facts.find(first->value);
  return known != facts.end() && !known->second && is_asked_by_number(*first->value, 2);
}

// What the value was made of that is zero when it is, and only then.
const llvm::Value* same_truth(const llvm::Value& value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
  if (instruction == nullptr) return nullptr;
  if (llvm::isa<llvm::ZExtInst, llvm::SExtInst, llvm::FreezeInst>(instruction)) {
    return instruction->getOperand(0);
  }
  // A bool in a byte, such as std::unique_lock has.
  if (!llvm::isa<llvm::TruncInst>(instruction) || !value.getType()->isIntegerTy(1)) return nullptr;
  const llvm::Value* byte = instruction->getOperand(0);
  const llvm::KnownBits bits =
      llvm::computeKnownBits(byte, instruction->getModule()->getDataLayout());
  return bits.countMaxActiveBits() <= 1 ? byte : nullptr;
}

std::optional<bool> opposite(std::optional<bool> known) {
  return known ? std::optional(!*known) : std::nullopt;
}

// Such as the address of a member.
bool is_never_zero(const llvm::Value& value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
  const auto* argument = llvm::dyn_cast<llvm::Argument>(&value);
  if (instruction == nullptr && argument == nullptr) return false;
  const llvm::Function& function =
      instruction != nullptr ? *instruction->getFunction() : *argument->getParent();
  return llvm::isKnownNonZero(&value, function.getParent()->getDataLayout());
}

std::optional<bool> is_zero(const llvm::Value* value, const Facts& facts, unsigned depth) {
  using namespace llvm::PatternMatch;
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(value)) {
    if (constant->isNullValue()) return true;
    const auto* number = llvm::dyn_cast<llvm::ConstantExpr>(constant);
    const bool is_address = number != nullptr && number->getOpcode() == llvm::Instruction::IntToPtr;
    if (is_address) return is_zero(number->getOperand(0), facts, depth);
    if (llvm::isa<llvm::ConstantInt, llvm::GlobalVariable>(constant)) return false;
    return std::nullopt;
  }
  if (const auto known = facts.find(value); known != facts.end()) return known->second;
  if (is_never_zero(*value)) return false;
  if (depth == kDepthMax) return std::nullopt;
  if (const std::optional<ZeroTest> test = zero_test(value)) {
    const std::optional<bool> tested = is_zero(test->value, facts, depth + 1);
    return test->is_true_for_zero ? opposite(tested) : tested;
  }
  if (const std::optional<NumberTest> test = number_test(value)) {
    const std::optional<bool> tested = is_zero(test->value, facts, depth + 1);
    if (tested == true) return test->is_for_equal;
    if (tested == false && is_asked_by_number(*test->value, 1)) return !test->is_for_equal;
    return std::nullopt;
  }
  const llvm::Value* left = nullptr;
  const llvm::Value* right = nullptr;
  if (match(value, m_LogicalAnd(m_Value(left), m_Value(right)))) {
    if (ask_for_all_numbers(left, right, /*are_for_equal=*/false, facts)) return true;
    const std::optional<bool> first = is_zero(left, facts, depth + 1);
    const std::optional<bool> second = is_zero(right, facts, depth + 1);
    if (first == true || second == true) return true;
    return first == false && second == false ? std::optional(false) : std::nullopt;
  }
  if (match(value, m_LogicalOr(m_Value(left), m_Value(right)))) {
    if (ask_for_all_numbers(left, right, /*are_for_equal=*/true, facts)) return false;
    const std::optional<bool> first = is_zero(left, facts, depth + 1);
    const std::optional<bool> second = is_zero(right, facts, depth + 1);
    if (first == false || second == false) return false;
    return first == true && second == true ? std::optional(true) : std::nullopt;
  }
  if (match(value, m_Not(m_Value(left))) && value->getType()->isIntegerTy(1)) {
    return opposite(is_zero(left, facts, depth + 1));
  }
  if (const llvm::Value* same = same_truth(*value)) return is_zero(same, facts, depth + 1);
  return std::nullopt;
}

void learn(Facts& facts, const llvm::Value* value, bool zero, unsigned depth = 0) {
  using namespace llvm::PatternMatch;
  if (llvm::isa<llvm::Constant>(value) || facts.size() >= kFactsMax) return;
  facts[value] = zero;
  if (depth == kDepthMax) return;
  if (const std::optional<ZeroTest> test = zero_test(value)) {
    learn(facts, test->value, test->is_true_for_zero != zero, depth + 1);
  }
  const std::optional<NumberTest> number = number_test(value);
  if (number && number->is_for_equal != zero) learn(facts, number->value, false, depth + 1);
  const llvm::Value* left = nullptr;
  const llvm::Value* right = nullptr;
  const bool are_both = (zero && match(value, m_LogicalOr(m_Value(left), m_Value(right)))) ||
                        (!zero && match(value, m_LogicalAnd(m_Value(left), m_Value(right))));
  if (are_both) {
    learn(facts, left, zero, depth + 1);
    learn(facts, right, zero, depth + 1);
  }
  if (match(value, m_Not(m_Value(left))) && value->getType()->isIntegerTy(1)) {
    learn(facts, left, !zero, depth + 1);
  }
  if (const llvm::Value* same = same_truth(*value)) learn(facts, same, zero, depth + 1);
}

// What holds on both ways.  True when that is less than was known.
bool weaken(Facts& facts, const Facts& other) {
  return std::erase_if(facts, [&](const auto& fact) {
           const auto found = other.find(fact.first);
           return found == other.end() || found->second != fact.second;
         }) != 0;
}

bool join(States& states, unsigned held, const Facts& facts) {
  const auto [place, is_new] = states.try_emplace(held, facts);
  return is_new || weaken(place->second, facts);
}

States after_instruction(const llvm::Instruction& instruction, const States& states) {
  const std::optional<LockOperation> operation = lock_operation(instruction);
  States changed;
  for (const auto& [held, known] : states) {
    Facts facts = known;
    facts.erase(&instruction);  // another one was computed last time
    if (!operation) {
      join(changed, held, facts);
      continue;
    }
    switch (*operation) {
      case LockOperation::kAcquire:
      case LockOperation::kTryAcquire: {
        const bool is_told = *operation == LockOperation::kTryAcquire || !instruction.use_empty();
        if (is_told && !instruction.getType()->isVoidTy()) {
          Facts failed = facts;
          learn(failed, &instruction, false);
          join(changed, held, failed);
          learn(facts, &instruction, true);
        }
        join(changed, std::min(held + 1, HeldLocks::kMany), facts);
        break;
      }
      case LockOperation::kRelease:
        // Of any number, any number is left.
        join(changed, held == 0 || held == HeldLocks::kMany ? held : held - 1, facts);
        break;
      case LockOperation::kWait:
      case LockOperation::kOther:
        join(changed, held, facts);
        break;
    }
  }
  return changed;
}

// Whether what is switched by is zero on the way to a block; nothing when it may be or not.
std::optional<bool> is_zero_on_the_way(const llvm::SwitchInst& choice, const llvm::BasicBlock& to) {
  bool may_be_zero = choice.getDefaultDest() == &to;
  bool may_be_other = may_be_zero;
  for (const auto& known : choice.cases()) {
    const bool leads_there = known.getCaseSuccessor() == &to;
    if (known.getCaseValue()->isZero()) {
      may_be_zero = leads_there;
    } else {
      may_be_other |= leads_there;
    }
  }
  return may_be_zero != may_be_other ? std::optional(may_be_zero) : std::nullopt;
}

// On the way from one block to another: nothing when it is not gone with these facts.
std::optional<Facts> on_the_way(const llvm::BasicBlock& from, const llvm::BasicBlock& to,
                                Facts facts) {
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
  if (branch != nullptr && branch->isConditional() &&
      branch->getSuccessor(0) != branch->getSuccessor(1)) {
    const bool zero = branch->getSuccessor(1) == &to;
    if (is_zero(branch->getCondition(), facts) == !zero) return std::nullopt;
    learn(facts, branch->getCondition(), zero);
  }
  if (const auto* choice = llvm::dyn_cast<llvm::SwitchInst>(from.getTerminator())) {
    const llvm::Value* asked = choice->getCondition();
    const bool is_default = choice->getDefaultDest() == &to;
    if (is_default && is_zero(asked, facts) == false && is_asked_by_number(*asked, 1)) {
      return std::nullopt;
    }
    if (const std::optional<bool> zero = is_zero_on_the_way(*choice, to)) {
      if (is_zero(choice->getCondition(), facts) == !*zero) return std::nullopt;
      learn(facts, choice->getCondition(), *zero);
    }
  }
  Facts arrived = facts;
  for (const llvm::PHINode& phi : to.phis()) {
    arrived.erase(&phi);
    if (const auto known = is_zero(phi.getIncomingValueForBlock(&from), facts)) {
      if (arrived.size() < kFactsMax) arrived[&phi] = *known;
    }
  }
  return arrived;
}

// What is returned says whether a lock is held, such as that of a function that tries to take one.
bool tells_of_lock(const llvm::ReturnInst& end, const States& states) {
  const llvm::Value* value = end.getReturnValue();
  if (value == nullptr || states.size() < 2 || states.contains(HeldLocks::kMany)) return false;
  const std::optional<bool> first = is_zero(value, states.begin()->second);
  return first && std::all_of(std::next(states.begin()), states.end(), [&](const auto& state) {
           return is_zero(value, state.second) == !*first;
         });
}

}  // namespace

HeldLocks::HeldLocks(const llvm::Function& function) {
  bool has_release = false;
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const std::optional<LockOperation> operation = lock_operation(instruction);
    takes_any_ |= operation == LockOperation::kAcquire || operation == LockOperation::kTryAcquire;
    has_release |= operation == LockOperation::kRelease;
  }
  if (takes_any_) {
    flow(function);
  } else {
    releases_others_ = has_release;
  }
}

// To a fixed point: numbers are added, and facts are lost.
void HeldLocks::flow(const llvm::Function& function) {
  std::map<const llvm::BasicBlock*, States> entries;
  entries[&function.getEntryBlock()][0];
  const llvm::ReversePostOrderTraversal<const llvm::Function*> order(&function);
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::BasicBlock* block : order) {
      const States states = through(*block, entries[block]);
      for (const llvm::BasicBlock* successor : llvm::successors(block)) {
        for (const auto& [held, facts] : states) {
          const std::optional<Facts> arrived = on_the_way(*block, *successor, facts);
          if (arrived) changed |= join(entries[successor], held, *arrived);
        }
      }
    }
  }
  for (const llvm::BasicBlock* block : order) {
    const States states = through(*block, entries[block]);
    const auto* end = llvm::dyn_cast<llvm::ReturnInst>(block->getTerminator());
    if (end == nullptr) continue;
    // Where none may be held, too, the program knows what cannot be seen here.
    const bool is_certain = !states.empty() && states.begin()->first != 0;
    const bool is_counted = is_certain && states.begin()->first != kMany;
    if (is_counted || tells_of_lock(*end, states)) returns_with_lock_ = end;
  }
}

States HeldLocks::through(const llvm::BasicBlock& block, const States& states) {
  States now = states;
  for (const llvm::Instruction& instruction : block) {
    if (!now.empty()) note(instruction, now);
    if (!llvm::isa<llvm::PHINode>(instruction)) now = after_instruction(instruction, now);
    if (!now.empty()) after_[&instruction] = now.rbegin()->first;
  }
  return now;
}

void HeldLocks::note(const llvm::Instruction& instruction, const States& states) {
  before_[&instruction] = states.rbegin()->first;
  const bool releases = lock_operation(instruction) == LockOperation::kRelease;
  releases_others_ |= releases && states.contains(0);
}

unsigned HeldLocks::before(const llvm::Instruction& instruction) const {
  return before_.lookup(&instruction);
}

unsigned HeldLocks::after(const llvm::Instruction& instruction) const {
  return after_.lookup(&instruction);
}

}  // namespace pawl::compiler::fase
