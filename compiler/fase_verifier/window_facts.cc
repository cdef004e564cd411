#include "window_facts.h"

#include "abi_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/PatternMatch.h"
#include "memory.h"

namespace pawl::compiler::fase_verifier {
namespace {

constexpr unsigned kConditionDepth = 32;

// Of (uint64_t)address - kWindow, as a number; or null.  Constants come as expressions of the same
// form.
const llvm::Value* address_of_distance(const llvm::Value* value) {
  const auto* difference = llvm::dyn_cast<llvm::Operator>(value);
  if (difference == nullptr || difference->getNumOperands() != 2) return nullptr;
  const auto* number = llvm::dyn_cast<llvm::ConstantInt>(difference->getOperand(1));
  const bool is_from_window =
      number != nullptr &&
      ((difference->getOpcode() == llvm::Instruction::Sub && number->getZExtValue() == kWindow) ||
       (difference->getOpcode() == llvm::Instruction::Add && number->getZExtValue() == -kWindow));
  return is_from_window ? difference->getOperand(0) : nullptr;
}

// What the condition's value says of the object.
std::optional<bool> says(const llvm::Value* condition, bool value, const llvm::Value* object,
                         unsigned depth) {
  using namespace llvm::PatternMatch;
  if (depth == 0) return std::nullopt;
  const llvm::Value* first = nullptr;
  const llvm::Value* second = nullptr;
  if (match(condition, m_Not(m_Value(first)))) return says(first, !value, object, depth - 1);
  const bool are_both = value ? match(condition, m_LogicalAnd(m_Value(first), m_Value(second)))
                              : match(condition, m_LogicalOr(m_Value(first), m_Value(second)));
  if (are_both) {
    const std::optional<bool> said = says(first, value, object, depth - 1);
    return said.has_value() ? said : says(second, value, object, depth - 1);
  }
  // (uint64_t)object - kWindow < kWindowBytes
  llvm::CmpInst::Predicate predicate;
  if (!match(condition, m_ICmp(predicate, m_Value(first), m_SpecificInt(kWindowBytes)))) return {};
  const llvm::Value* address = address_of_distance(first);
  if (address == nullptr || object_of(address) != object) return std::nullopt;
  if (predicate == llvm::CmpInst::ICMP_ULT) return value;
  if (predicate == llvm::CmpInst::ICMP_UGE) return !value;
  return std::nullopt;
}

// Whether addresses are in the window, one or several, and nothing else.
bool asks_for_window(const llvm::Value* condition, unsigned depth) {
  using namespace llvm::PatternMatch;
  const llvm::Value* first = nullptr;
  const llvm::Value* second = nullptr;
  if (depth == 0) return false;
  if (match(condition, m_LogicalOr(m_Value(first), m_Value(second)))) {
    return asks_for_window(first, depth - 1) && asks_for_window(second, depth - 1);
  }
  llvm::CmpInst::Predicate predicate;
  return match(condition, m_ICmp(predicate, m_Value(first), m_SpecificInt(kWindowBytes))) &&
         predicate == llvm::CmpInst::ICMP_ULT && address_of_distance(first) != nullptr;
}

}  // namespace

bool is_past_asked_cut(const llvm::BasicBlock& from, const llvm::BasicBlock& to) {
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
  if (branch == nullptr || branch->isUnconditional() || branch->getSuccessor(1) != &to) {
    return false;
  }
  const bool has_cut = llvm::any_of(*branch->getSuccessor(0), [](const llvm::Instruction& at) {
    return abi_call(at) == AbiCall::kCut;
  });
  return has_cut && asks_for_window(branch->getCondition(), kConditionDepth);
}

std::optional<bool> in_window(const llvm::BasicBlock& from, const llvm::BasicBlock& to,
                              const llvm::Value* pointer) {
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
  if (branch == nullptr || branch->isUnconditional()) return std::nullopt;
  if (branch->getSuccessor(0) == branch->getSuccessor(1)) return std::nullopt;
  return says(branch->getCondition(), branch->getSuccessor(0) == &to, object_of(pointer),
              kConditionDepth);
}

}  // namespace pawl::compiler::fase_verifier
