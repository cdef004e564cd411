// Where regions end: the cuts of a function.
//
// For code inside a section they see to it that
// 1. on every way from the beginning of the section, from the function's entry and from what ends a
//    region by itself to a write of persistent memory there is a cut;
// 2. between a cut and the next nothing is written that may be the same as was read since the cut.
// So what follows a cut can be executed again from there, as often as it takes.  The scheme is that
// of De Kruijf et al. (PLDI 2012), with another choice of cuts: as late as possible, which in code
// without branches is the least number, and before loops where that is enough.
//
// Where nobody knows whether what is written is persistent, and nothing else needs the cut, it is
// made only if that is so when it is executed: what is written elsewhere is never resumed.
#pragma once

#include <string>
#include <vector>

#include "llvm/IR/PassManager.h"
#include "sections.h"

namespace pawl::compiler::fase {

struct Cut {
  llvm::Instruction* before = nullptr;
  std::string why;
  // Needed only if one of these, which are known there, leads into persistent memory; empty:
  // always.
  std::vector<llvm::Value*> only_for;
};

// In the order of the instructions.
std::vector<Cut> find_cuts(llvm::Function& function, const Sections& sections,
                           llvm::FunctionAnalysisManager& analyses);

}  // namespace pawl::compiler::fase
