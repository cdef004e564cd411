// The wrappers of libc that docs/kernel-stores.md lists are defined in kernel_stores_io.cc and
// kernel_stores_other.cc.  From an archive a linker takes only what is referred to, and may find
// read() elsewhere first: a program that calls these has the wrappers.
#pragma once

namespace pawl {

void link_kernel_stores_io();
void link_kernel_stores_other();

}  // namespace pawl
