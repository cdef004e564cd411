// Notes for the run-time of what was stored, and where stores into volatile memory go in recovery.
#pragma once

#include "accesses.h"
#include "llvm/IR/IRBuilder.h"
#include "run_time_calls.h"
#include "sections.h"

namespace pawl::compiler::fase {

// A write of a function, as it stood before frames were added.
struct NotedWrite {
  llvm::Instruction* instruction = nullptr;
  Write write;
  bool is_inside = false;  // perhaps in a section
};

std::vector<NotedWrite> find_writes(llvm::Function& function, const Sections& sections);

// Frames are there already: what is added stands between a cut and its write.
void emit_notes(std::vector<NotedWrite> writes, RunTime& run_time);

// (uint64_t)pointer - PAWL_FASE_WINDOW < PAWL_FASE_WINDOW_BYTES
llvm::Value* is_in_window(llvm::IRBuilderBase& builder, llvm::Value* pointer);

}  // namespace pawl::compiler::fase
