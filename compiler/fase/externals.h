// Functions of other modules: whether they were compiled for sections, too.
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler::fase {

// Each function that others can call gets a second name, which says so: __pawl_fase_NAME.
void say_what_is_compiled(llvm::Module& module);

// The program does not link where the function has no such name.
void need_compiled(llvm::Function& function);

// That second name's address, or null where there is none.
llvm::Constant* compiled_if_there(llvm::Function& function);

}  // namespace pawl::compiler::fase
