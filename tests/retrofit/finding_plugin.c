/* A library whose constructor finds functions of another library: the loader's lock is held
 * meanwhile. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void* found_by_plugin;

__attribute__((constructor)) static void begin(void) {
  void* library = dlopen("libc.so.6", RTLD_NOW);
  if (library != NULL) found_by_plugin = dlsym(library, "getenv");
}
