// Faults that tests put into the compiler, one at a time, to see them found (tests/fase/compiler/
// mutants.py), by the verifier and, without it, by what crashes:
//
//   -mllvm -pawl-fase-fault=drop-N     the cut number N of each function is left out
//                          =reads      what a region has read is forgotten
//                          =loops      what the turn of a loop before has read is forgotten
//                          =turns      in two turns of a loop an address is taken for the same
//                          =calls      only releases and acquisitions of locks end regions
//                          =objects    each cut asks for one object, whichever others need it
//                          =live-ins   the first live-in of a region is not stored
//                          =globals    what a variable held is not kept for resumed sections
//                          =kept       the run-time is not told which variables frames hold
//                          =notes      the run-time is told of no store
//   -mllvm -pawl-fase-unverified       the verifier does not look
#pragma once

#include <vector>

#include "cutting.h"
#include "llvm/ADT/StringRef.h"

namespace pawl::compiler::fase {

bool has_fault(llvm::StringRef fault);
// As drop-N says.
void drop_cut(std::vector<Cut>& cuts);
bool is_unverified();

}  // namespace pawl::compiler::fase
