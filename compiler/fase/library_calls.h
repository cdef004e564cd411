// Functions of the C and C++ libraries: what they do, as far as failure-atomic sections care.
#pragma once

#include <optional>

#include "callees.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"

namespace pawl::compiler::fase {

// kNothing, kReads, kUnrepeatable, kEnds, kThrows or kRefused; nothing for what is no library's
// function, and for those that library_copies.h replaces.
std::optional<Callee> library_callee(const llvm::Function& function);

// What a refused one does: "malloc(), which ...".
llvm::StringRef library_refusal(const llvm::Function& function);

// True of those that call what they are given last, before they return.
bool calls_last_argument(const llvm::CallBase& call);

}  // namespace pawl::compiler::fase
