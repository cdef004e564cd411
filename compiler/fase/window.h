// Where persistent memory is: in the window of addresses that files are mapped to, and nowhere
// else.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Value.h"

namespace pawl::compiler::fase {

// (uint64_t)pointer - PAWL_FASE_WINDOW < PAWL_FASE_WINDOW_BYTES
llvm::Value* is_in_window(llvm::IRBuilderBase& builder, llvm::Value* pointer);

// What the address was computed from by additions only, on all ways: no object is partly in the
// window, so that one answer serves for all addresses in it.
llvm::Value* object_of_address(llvm::Value* pointer);

}  // namespace pawl::compiler::fase
