#include "module_facts.h"

#include "abi_calls.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "memory.h"

namespace pawl::compiler::fase_verifier {
namespace {

constexpr llvm::StringLiteral kSection = "pawl_fase_functions";
constexpr llvm::StringLiteral kKeptSection = "pawl_fase_kept";

std::uint64_t number(const llvm::Constant* constant) {
  const auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  return integer == nullptr ? 0 : integer->getZExtValue();
}

// Uses that call nothing in a section: tables, names for the linker, and constructors, which come
// before all of them.
bool is_harmless(const llvm::Constant& constant) {
  if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&constant)) {
    return variable->getSection() == kSection || variable->getSection() == "llvm.metadata" ||
           variable->getName() == "llvm.global_ctors";
  }
  if (llvm::isa<llvm::GlobalValue>(constant)) return false;
  return llvm::all_of(constant.users(), [](const llvm::User* user) {
    const auto* of = llvm::dyn_cast<llvm::Constant>(user);
    return of != nullptr && is_harmless(*of);
  });
}

bool is_address_taken(const llvm::Value& value) {
  for (const llvm::Use& use : value.uses()) {
    const llvm::User* user = use.getUser();
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) {
      if (call->isCallee(&use)) continue;
      return true;
    }
    if (const auto* alias = llvm::dyn_cast<llvm::GlobalAlias>(user)) {
      if (alias->getName().starts_with("__pawl_fase_")) continue;
      return true;
    }
    const auto* constant = llvm::dyn_cast<llvm::Constant>(user);
    if (constant == nullptr || !is_harmless(*constant)) return true;
  }
  return false;
}

}  // namespace

ModuleFacts::ModuleFacts(llvm::Module& module) : module_(module) {
  find_tables();
  find_quiet();
  find_sections();
  find_armed();
  find_told_of();
  find_changed();
}

void ModuleFacts::find_tables() {
  for (const llvm::GlobalVariable& variable : module_.globals()) {
    if (variable.getSection() != kSection || !variable.hasInitializer()) continue;
    const llvm::Constant& fields = *variable.getInitializer();
    constexpr unsigned kRegions = 4;
    constexpr unsigned kRegionCount = 5;
    Table table;
    table.function = llvm::dyn_cast<llvm::Function>(fields.getAggregateElement(0u));
    table.resume = llvm::dyn_cast<llvm::Function>(fields.getAggregateElement(1u));
    const auto* regions =
        llvm::dyn_cast<llvm::GlobalVariable>(fields.getAggregateElement(kRegions));
    const std::uint64_t count = number(fields.getAggregateElement(kRegionCount));
    for (unsigned i = 0; i < count && regions != nullptr && regions->hasInitializer(); ++i) {
      const llvm::Constant* region = regions->getInitializer()->getAggregateElement(i);
      if (region == nullptr) break;
      table.regions.push_back(
          {number(region->getAggregateElement(1u)), number(region->getAggregateElement(2u))});
    }
    tables_[&variable] = table;
  }
  for (const auto& [variable, table] : tables_) {
    if (table.resume != nullptr) resumed_by_[table.resume] = &table;
  }
}

const Table* ModuleFacts::table(const llvm::Value* variable) const {
  const auto found = tables_.find(variable);
  return found == tables_.end() ? nullptr : &found->second;
}

const Table* ModuleFacts::resumed_by(const llvm::Function& function) const {
  return resumed_by_.lookup(&function);
}

const BackEdges& ModuleFacts::back_edges(const llvm::Function& function) const {
  const auto [place, is_new] = back_edges_.try_emplace(&function);
  if (is_new) {
    llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>, 8> edges;
    llvm::FindFunctionBackedges(function, edges);
    place->second.insert(edges.begin(), edges.end());
  }
  return place->second;
}

// All are quiet until one is found not to be, and then those that call it.
void ModuleFacts::find_quiet() {
  for (const llvm::Function& function : module_) {
    if (!function.isDeclaration() && !function.isInterposable()) quiet_.insert(&function);
  }
  const auto is_loud = [&](const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr) return false;
    switch (abi_call(*call)) {
      case AbiCall::kNone:
        break;
      case AbiCall::kStored:
      case AbiCall::kVolatileTarget:
      case AbiCall::kVolatileLoad:
      case AbiCall::kRefuse:
      case AbiCall::kRefuseUnarmed:
      case AbiCall::kRoot:
      case AbiCall::kQuiet:
        return false;
      default:
        return true;
    }
    const llvm::Function* callee = call->getCalledFunction();
    if (callee != nullptr && quiet_.contains(callee)) return false;
    return foreign(*call) == Foreign::kUnknown;
  };
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const llvm::Function& function : module_) {
      if (!quiet_.contains(&function)) continue;
      const bool is_quiet = llvm::none_of(llvm::instructions(function), is_loud);
      if (is_quiet) continue;
      quiet_.erase(&function);
      has_changed = true;
    }
  }
}

namespace {

// Before it returns.
bool calls_last_argument(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  return callee != nullptr && llvm::StringSwitch<bool>(callee->getName())
                                  .Cases("qsort", "bsearch", "pthread_once", true)
                                  .Default(false);
}

}  // namespace

bool ModuleFacts::may_begin_region(const llvm::CallBase& call) const {
  if (foreign(call) != Foreign::kUnknown) return false;
  const llvm::Function* callee = call.getCalledFunction();
  if (callee != nullptr && is_quiet(*callee)) return false;
  // Where it is not refused, what the C library does itself logs no frame.
  const AbiCall refusal = refusal_of(call);
  if (refusal == AbiCall::kRefuseUnarmed) return false;
  if (refusal != AbiCall::kRefuse) return true;
  if (!calls_last_argument(call)) return false;
  const auto* last =
      llvm::dyn_cast<llvm::Function>(call.getArgOperand(call.arg_size() - 1)->stripPointerCasts());
  return last == nullptr || !is_quiet(*last);
}

namespace {

// Releases that are counted on one way; with more of them a lock counts as held.
constexpr unsigned kReleasesMax = 64;

// Backward, to a lock that is taken and not released from there on.  The mark of a way counts the
// releases that it went over, and that no taking has met yet.
class InsideSearch {
 public:
  InsideSearch(const llvm::DenseSet<const llvm::Function*>& left_inside, bool enters_inside)
      : left_inside_(left_inside), enters_inside_(enters_inside) {}

  bool at(const llvm::Instruction& instruction, WayState& way) {
    if (is_found_) return false;
    switch (abi_call(instruction)) {
      case AbiCall::kReleaseLast:
        return false;
      case AbiCall::kRelease:
        is_found_ = ++way.mark > kReleasesMax;
        return !is_found_;
      case AbiCall::kTryAcquire:
      case AbiCall::kAcquire:
        if (way.passes_failed(instruction)) return true;
        is_found_ = way.mark == 0;
        if (!is_found_) --way.mark;
        return !is_found_;
      case AbiCall::kWait:
        is_found_ = way.mark == 0;
        return !is_found_;
      default:
        break;
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (callee != nullptr && left_inside_.contains(callee)) is_found_ = true;
    return !is_found_;
  }
  static bool over(const llvm::BasicBlock& from, const llvm::BasicBlock& to, WayState& way) {
    if (const llvm::Instruction* lock = not_acquired(from, to)) way.failed = lock;
    return true;
  }
  void end(const llvm::BasicBlock&, const WayState&) { is_found_ |= enters_inside_; }

  bool is_found() const { return is_found_; }

 private:
  const llvm::DenseSet<const llvm::Function*>& left_inside_;
  const bool enters_inside_;
  bool is_found_ = false;
};

}  // namespace

bool ModuleFacts::search_inside(const llvm::Instruction& instruction, bool enters_inside) const {
  Budget budget;
  InsideSearch search(left_inside_, enters_inside);
  Walk<InsideSearch> walk(budget, back_edges(*instruction.getFunction()), search);
  walk.backward(instruction);
  return search.is_found() || budget.is_spent();
}

bool ModuleFacts::may_be_inside(const llvm::Instruction& instruction) const {
  return search_inside(instruction, may_enter_inside(*instruction.getFunction()));
}

bool ModuleFacts::may_enter_inside(const llvm::Function& function) const {
  return entered_inside_.contains(&function);
}

void ModuleFacts::find_sections() {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const llvm::Function& function : module_) {
      if (function.isDeclaration() || left_inside_.contains(&function)) continue;
      for (const llvm::BasicBlock& block : function) {
        if (!llvm::isa<llvm::ReturnInst, llvm::ResumeInst>(block.getTerminator())) continue;
        if (!search_inside(*block.getTerminator(), /*enters_inside=*/false)) continue;
        has_changed |= left_inside_.insert(&function).second;
      }
    }
  }
  for (const llvm::Function& function : module_) {
    if (function.isDeclaration() || function.getName() == "main") continue;
    if (resumed_by(function) != nullptr || !function.hasLocalLinkage() ||
        is_address_taken(function)) {
      entered_inside_.insert(&function);
    }
  }
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const llvm::Function& function : module_) {
      if (function.isDeclaration() || may_enter_inside(function)) continue;
      for (const llvm::User* user : function.users()) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
        if (call == nullptr || !may_be_inside(*call)) continue;
        has_changed |= entered_inside_.insert(&function).second;
        break;
      }
    }
  }
}

// A release logs a frame only where there is one already.
bool ModuleFacts::may_arm(const llvm::Instruction& instruction) const {
  switch (abi_call(instruction)) {
    case AbiCall::kNone:
      break;
    case AbiCall::kCut:
    case AbiCall::kReturn:
      return true;
    default:
      return false;
  }
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return call != nullptr && may_begin_region(*call);
}

namespace {

// Backward from a call, to what may have logged a frame of its section.
class ArmedSearch {
 public:
  ArmedSearch(const ModuleFacts& facts, bool enters_armed)
      : facts_(facts), enters_armed_(enters_armed) {}

  bool at(const llvm::Instruction& instruction, WayState& way) {
    if (is_found_) return false;
    switch (abi_call(instruction)) {
      // No section, and so no frame, goes on behind these.
      case AbiCall::kReleaseLast:
      case AbiCall::kWait:
      // If there is a frame, what follows is in vain.
      case AbiCall::kRefuse:
        return false;
      case AbiCall::kTryAcquire:
      case AbiCall::kAcquire:
        // The first lock of a section, unless there may be another.
        return way.passes_failed(instruction) || facts_.may_be_inside(instruction);
      default:
        break;
    }
    is_found_ = facts_.may_arm(instruction);
    return !is_found_;
  }
  bool over(const llvm::BasicBlock& from, const llvm::BasicBlock& to, WayState& way) const {
    if (const llvm::Instruction* lock = not_acquired(from, to)) way.failed = lock;
    return !is_found_;
  }
  void end(const llvm::BasicBlock&, const WayState&) { is_found_ |= enters_armed_; }

  bool is_found() const { return is_found_; }

 private:
  const ModuleFacts& facts_;
  const bool enters_armed_;
  bool is_found_ = false;
};

}  // namespace

bool ModuleFacts::may_enter_armed(const llvm::Function& function) const {
  return entered_armed_.contains(&function);
}

bool ModuleFacts::may_be_armed(const llvm::Instruction& call) const {
  if (!may_be_inside(call)) return false;
  const llvm::Function& caller = *call.getFunction();
  Budget budget;
  ArmedSearch search(*this, may_enter_armed(caller));
  Walk<ArmedSearch>(budget, back_edges(caller), search).backward(call);
  return search.is_found() || budget.is_spent();
}

void ModuleFacts::find_armed() {
  for (const llvm::Function* function : entered_inside_) {
    const bool has_other_callers = resumed_by(*function) != nullptr ||
                                   !function->hasLocalLinkage() || is_address_taken(*function);
    if (has_other_callers) entered_armed_.insert(function);
  }
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const llvm::Function* function : entered_inside_) {
      if (may_enter_armed(*function)) continue;
      const bool is_armed = llvm::any_of(function->users(), [&](const llvm::User* user) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
        return call != nullptr && may_be_armed(*call);
      });
      if (is_armed) has_changed |= entered_armed_.insert(function).second;
    }
  }
}

void ModuleFacts::find_told_of() {
  for (const llvm::GlobalVariable& entry : module_.globals()) {
    if (entry.getSection() != kKeptSection || !entry.hasInitializer()) continue;
    const llvm::Constant& fields = *entry.getInitializer();
    const auto* variable =
        llvm::dyn_cast<llvm::GlobalVariable>(fields.getAggregateElement(0u)->stripPointerCasts());
    if (variable == nullptr) continue;
    const llvm::DataLayout& layout = module_.getDataLayout();
    const std::uint64_t whole = layout.getTypeAllocSize(variable->getValueType()).getFixedValue();
    if (number(fields.getAggregateElement(1u)) >= whole) told_of_.insert(variable);
  }
}

void ModuleFacts::find_changed() {
  for (const llvm::Function& function : module_) {
    if (resumed_by(function) != nullptr) continue;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      for (const Access& write : writes(instruction)) {
        if (write.pointer == nullptr) continue;
        const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object_of(write.pointer));
        if (variable == nullptr || changed_.contains(variable)) continue;
        if (may_be_inside(instruction)) changed_.insert(variable);
      }
    }
  }
}

namespace {

// The lock that was not acquired if the value is not zero: its result, or that in C11's numbers.
const llvm::Instruction* not_acquired_unless_zero(const llvm::Value& value) {
  using namespace llvm::PatternMatch;
  llvm::CmpInst::Predicate predicate;
  const llvm::Value* result = &value;
  const llvm::Value* tested = nullptr;
  const bool is_c11 =
      match(&value, m_Select(m_ICmp(predicate, m_Value(tested), m_Zero()), m_Zero(), m_Value()));
  if (is_c11 && predicate == llvm::CmpInst::ICMP_EQ) result = tested;
  const auto* call = llvm::dyn_cast<llvm::CallInst>(result);
  if (call == nullptr) return nullptr;
  const AbiCall kind = abi_call(*call);
  return kind == AbiCall::kTryAcquire || kind == AbiCall::kAcquire ? call : nullptr;
}

const llvm::Instruction* not_acquired_by_switch(const llvm::SwitchInst& choice,
                                                const llvm::BasicBlock& to) {
  bool may_be_zero = choice.getDefaultDest() == &to;
  for (const auto& known : choice.cases()) {
    if (known.getCaseValue()->isZero()) may_be_zero = known.getCaseSuccessor() == &to;
  }
  return may_be_zero ? nullptr : not_acquired_unless_zero(*choice.getCondition());
}

}  // namespace

const llvm::Instruction* not_acquired(const llvm::Value* condition, bool value) {
  using namespace llvm::PatternMatch;
  llvm::CmpInst::Predicate predicate;
  const llvm::Value* compared = nullptr;
  const llvm::Value* other = nullptr;
  const bool are_both = value ? match(condition, m_LogicalAnd(m_Value(compared), m_Value(other)))
                              : match(condition, m_LogicalOr(m_Value(compared), m_Value(other)));
  if (are_both) {
    const llvm::Instruction* first = not_acquired(compared, value);
    return first != nullptr ? first : not_acquired(other, value);
  }
  // Either of them, and both say so: std::shared_mutex asks for EBUSY and EAGAIN.
  const bool is_either = value ? match(condition, m_LogicalOr(m_Value(compared), m_Value(other)))
                               : match(condition, m_LogicalAnd(m_Value(compared), m_Value(other)));
  if (is_either) {
    const llvm::Instruction* first = not_acquired(compared, value);
    return first == not_acquired(other, value) ? first : nullptr;
  }
  if (match(condition, m_Not(m_Value(compared)))) return not_acquired(compared, !value);
  llvm::ConstantInt* number = nullptr;
  if (!match(condition, m_ICmp(predicate, m_Value(compared), m_ConstantInt(number))))
    return nullptr;
  const bool is_equal = predicate == llvm::CmpInst::ICMP_EQ ? value : !value;
  if (predicate != llvm::CmpInst::ICMP_EQ && predicate != llvm::CmpInst::ICMP_NE) return nullptr;
  const bool is_zero = is_equal == number->isZero();
  return is_zero ? nullptr : not_acquired_unless_zero(*compared);
}

const llvm::Instruction* not_acquired(const llvm::BasicBlock& from, const llvm::BasicBlock& to) {
  if (const auto* choice = llvm::dyn_cast<llvm::SwitchInst>(from.getTerminator())) {
    return not_acquired_by_switch(*choice, to);
  }
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(from.getTerminator());
  if (branch == nullptr || branch->isUnconditional()) return nullptr;
  if (branch->getSuccessor(0) == branch->getSuccessor(1)) return nullptr;
  return not_acquired(branch->getCondition(), branch->getSuccessor(0) == &to);
}

}  // namespace pawl::compiler::fase_verifier
