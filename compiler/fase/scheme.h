// How sections are made failure-atomic: by iDO, or, for comparison, by one of the schemes before
// it.
#pragma once

#include <cstdint>

#include "run_time_calls.h"

namespace pawl::compiler::fase {

// As PAWL_FASE_SCHEME_* of the run-time.
enum class Scheme : std::uint32_t {
  kIdo = 0,     // regions between antidependences
  kJustdo = 1,  // each store is a region
  kUndo = 2,    // no regions: what a store overwrites is logged, and put back after a crash
};

// Which the wrapper has asked for (-mllvm -pawl-fase-scheme=undo).
Scheme scheme();

// The run-time has to know it before a file is opened.
void say_scheme(llvm::Module& module, RunTime& run_time);

}  // namespace pawl::compiler::fase
