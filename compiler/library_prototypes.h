// Is a function that a program declares the library's, or one of its own by the same name?
#pragma once

#include "llvm/IR/Function.h"

namespace pawl::compiler {

// False of a declaration that does not agree with the C library's.  Programs have functions of
// their own by the names of POSIX: getline(char*, int), accept(parser*).  And a configure script
// declares `char strlcpy();` to ask whether there is one.  True of names that ISO C or C++ keep for
// themselves.
bool is_declared_as_library(const llvm::Function& function, llvm::StringRef name);

}  // namespace pawl::compiler
