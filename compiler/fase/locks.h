// The locks that delineate failure-atomic sections: which calls they are, and what becomes of them.
#pragma once

#include <optional>

#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler::fase {

enum class LockOperation {
  kAcquire,     // and waits
  kTryAcquire,  // or fails
  kRelease,
  kWait,   // on a condition: releases and acquires
  kOther,  // makes, destroys or wakes
};

// How a function tells its outcome.
enum class LockResult { kPosix, kC11, kNone };

struct LockFunction {
  llvm::StringLiteral name;
  LockOperation operation;
  llvm::StringLiteral replacement;
  LockResult result = LockResult::kPosix;
};

// Null when it is no call of such a function.
const LockFunction* lock_function(const llvm::Value& instruction);
std::optional<LockOperation> lock_operation(const llvm::Value& instruction);

// Where control goes on after a release, in the arguments that the run-time takes.
struct RegionArguments {
  llvm::Constant* function;
  llvm::Constant* region;
  llvm::Value* live_ins;
};

// Has the run-time do it.  `region` is for releases only, and not for those that end a FASE for
// certain.  Returns the new call; the old one is gone.
llvm::CallInst* replace_lock_call(llvm::CallBase& call, std::optional<RegionArguments> region);

// True of what became of a release behind which there is no section: what is resumed ends there.
bool ends_all_sections(const llvm::Instruction& instruction);

// Errors for what the run-time cannot do: other functions of these locks, and their addresses
// taken.
void refuse_other_locks(llvm::Module& module);

}  // namespace pawl::compiler::fase
