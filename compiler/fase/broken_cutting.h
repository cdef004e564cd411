// Faults that tests put into the search for cuts, to see them found (tests/fase/verifier/):
//   -mllvm -pawl-break-cutting=drop-N   the cut number N of each function is left out
//                             =loops    what the turn of a loop before has read is forgotten
//                             =calls    only releases and acquisitions of locks end regions
#pragma once

#include <vector>

#include "cutting.h"
#include "llvm/ADT/StringRef.h"

namespace pawl::compiler::fase {

bool is_broken(llvm::StringRef fault);
void break_cuts(std::vector<Cut>& cuts);

}  // namespace pawl::compiler::fase
