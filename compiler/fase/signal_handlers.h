// Functions that the kernel may call as handlers of signals, in the midst of a section.
#pragma once

#include <vector>

#include "run_time_calls.h"
#include "sections.h"

namespace pawl::compiler::fase {

// To be asked before there are tables, which have functions' addresses, too.
std::vector<llvm::Function*> find_signal_handlers(llvm::Module& module, const Sections& sections);

// Has each of them ask the run-time first whether it is one now: then what it does is outside of
// the section that it interrupts.  Behind all that else is done to the module.
void mark_signal_handlers(llvm::ArrayRef<llvm::Function*> handlers, RunTime& run_time);

}  // namespace pawl::compiler::fase
