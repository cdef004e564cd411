// Include this first in every file that defines a function of libc under its own name: fortified
// inlines and 64-bit redirections in libc's headers would define or rename the same symbols.
#pragma once

#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

// Defines the symbol that the program's calls reach instead of libc's.
#define PAWL_INTERPOSE extern "C" __attribute__((visibility("default")))

// Gives a function defined above in the same file another name.  (By the assembler, because libc
// declares some of these pairs with types that differ in name only; and not by a call, because
// calls from this library's own code pass through.)
#define PAWL_ALSO_KNOWN_AS(other_name, name) \
  __asm__(".globl " #other_name "\n.type " #other_name \
          ", @function\n" \
          ".set " #other_name ", " #name "\n")
