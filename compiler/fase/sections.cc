#include "sections.h"

#include <algorithm>

#include "accesses.h"
#include "callees.h"
#include "library_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "locks.h"

namespace pawl::compiler::fase {
namespace {

// A function's entry in the list of what is run before main().
bool is_entry_of_constructors(const llvm::User& entry) {
  if (!llvm::isa<llvm::ConstantStruct>(entry) || entry.use_empty()) return false;
  return llvm::all_of(entry.users(), [](const llvm::User* list) {
    return llvm::isa<llvm::ConstantArray>(list) && !list->use_empty() &&
           llvm::all_of(list->users(), [](const llvm::User* variable) {
             return llvm::isa<llvm::GlobalVariable>(variable) &&
                    variable->getName() == "llvm.global_ctors";
           });
  });
}

// Somebody may have the function's address, to call it at any time.  Lists of what is to be run
// before main(), or only to be kept, do not count.
bool is_address_taken(const llvm::Function& function) {
  const llvm::User* taker = nullptr;
  if (!function.hasAddressTaken(&taker, /*IgnoreCallbackUses=*/false,
                                /*IgnoreAssumeLikeCalls=*/true, /*IgnoreLLVMUsed=*/true)) {
    return false;
  }
  return !llvm::all_of(function.uses(), [](const llvm::Use& use) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
    return call != nullptr ? call->isCallee(&use) : is_entry_of_constructors(*use.getUser());
  });
}

Inside entry_from_elsewhere(const llvm::Function& function) {
  if (function.getName() == "main") return Inside::kNever;
  if (function.hasLocalLinkage() && !is_address_taken(function)) return Inside::kNever;
  return Inside::kPerhaps;
}

}  // namespace

bool is_defined(const llvm::Function& function) {
  return !function.isDeclarationForLinker() && !function.hasFnAttribute(llvm::Attribute::Naked) &&
         !ends_program(function);
}

Sections::Sections(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (is_defined(function)) locks_.try_emplace(&function, function);
  }
  find_entries(module);
  find_quiet(module);
}

void Sections::find_entries(llvm::Module& module) {
  std::vector<const llvm::Function*> to_visit;
  for (llvm::Function& function : module) {
    if (!is_defined(function)) continue;
    entries_[&function] = entry_from_elsewhere(function);
    to_visit.push_back(&function);
  }
  // What is called gets what its callers have, to a fixed point: it only grows.
  while (!to_visit.empty()) {
    const llvm::Function& function = *to_visit.back();
    to_visit.pop_back();
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
      if (callee == nullptr || !is_defined(*callee)) continue;
      Inside& known = entries_[callee];
      const Inside here = before(instruction);
      if (here <= known) continue;
      known = here;
      to_visit.push_back(callee);
    }
  }
}

void Sections::find_quiet(llvm::Module& module) {
  for (llvm::Function& function : module) {
    // Another module's copy may do what this one's optimiser has found needless.
    if (is_defined(function) && function.hasExactDefinition()) quiet_.insert(&function);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (llvm::Function& function : module) {
      if (!quiet_.contains(&function) || is_quiet(function)) continue;
      quiet_.erase(&function);
      changed = true;
    }
  }
}

bool Sections::is_quiet(llvm::Function& function) const {
  return llvm::all_of(llvm::instructions(function), [&](llvm::Instruction& instruction) {
    const std::optional<Write> write = write_of(instruction);
    if (write && write->provenance != Provenance::kVolatile) return false;
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr) return true;
    switch (callee_of(*call)) {
      case Callee::kNothing:
      case Callee::kHeap:
      case Callee::kReads:
      case Callee::kWrites:
      case Callee::kEnds:
      case Callee::kThrows:
        return true;
      case Callee::kDefined:
        return quiet_.contains(call->getCalledFunction());
      default:
        return false;
    }
  });
}

Inside Sections::entry(const llvm::Function& function) const { return entries_.lookup(&function); }

bool Sections::is_inside(const llvm::Function& function) const {
  const auto known = locks_.find(&function);
  return known != locks_.end() && (entry(function) != Inside::kNever || known->second.takes_any());
}

bool Sections::is_called_from_elsewhere(const llvm::Function& function) const {
  return entry_from_elsewhere(function) != Inside::kNever;
}

Inside Sections::before(const llvm::Instruction& instruction) const {
  const llvm::Function& function = *instruction.getFunction();
  return locks(function).before(instruction) != 0 ? Inside::kCertainly : entry(function);
}

Inside Sections::after(const llvm::Instruction& instruction) const {
  const llvm::Function& function = *instruction.getFunction();
  return locks(function).after(instruction) != 0 ? Inside::kCertainly : entry(function);
}

const HeldLocks& Sections::locks(const llvm::Function& function) const {
  return locks_.find(&function)->second;
}

bool Sections::may_cut(const llvm::CallBase& call) const {
  switch (callee_of(call)) {
    case Callee::kDefined:
      return !quiet_.contains(call.getCalledFunction());
    case Callee::kExternal:
    case Callee::kIndirect:
      return true;
    default:
      return false;
  }
}

bool Sections::may_cut_in_call_back(const llvm::CallBase& call) const {
  if (!calls_last_argument(call)) return false;
  const auto* called =
      llvm::dyn_cast<llvm::Function>(call.getArgOperand(call.arg_size() - 1)->stripPointerCasts());
  return called == nullptr || !quiet_.contains(called);
}

bool Sections::ends_region(const llvm::Instruction& instruction) const {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return false;
  if (const std::optional<LockOperation> operation = lock_operation(*call)) {
    return *operation != LockOperation::kOther;
  }
  return may_cut(*call) || callee_of(*call) == Callee::kUnrepeatable;
}

}  // namespace pawl::compiler::fase
