// one_store FILE [LIBRARY]: stores one byte into a mapping of FILE and commits it.  Ends with 3
// when the mapping is refused, having said why.
//
//   -DIN_LIBRARY   only the function that stores, for a library
//   -DSTORE        the program has that function itself
//   -DBY_HAND      calls pawl_stored() behind the store
//   -DBY_NAME      looks pawl_stored() up by its name, and says so by a call of it
//   -DIN_HEAP, -DIN_GROUP, -DPLAIN   instead of pawl_mmap()
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pawl/heap.h"
#include "pawl/pawl.h"
#include "pawl/store.h"

#if defined(IN_LIBRARY) || defined(STORE)
__attribute__((noinline)) void store(char* at) {
  *at = 'S';
#ifdef BY_HAND
  pawl_stored(at, 1);
#endif
}
#else
void store(char* at);
#endif

#ifndef IN_LIBRARY

enum { kBytes = 1 << 16, kRefused = 3 };

static int refused(const char* error) {
  fprintf(stderr, "%s\n", error);
  return kRefused;
}

int main(int count, char** arguments) {
  void (*store_there)(char*) = NULL;
  if (count > 2) {
    void* library = dlopen(arguments[2], RTLD_NOW);
    if (library == NULL) return 4;
    *(void**)&store_there = dlsym(library, "store");
  }
#ifndef BY_DLOPEN
  if (store_there == NULL) store_there = store;
#endif
#ifdef BY_NAME
  void (*stored)(const void*, size_t) = NULL;
  *(void**)&stored = dlsym(RTLD_DEFAULT, "pawl_stored");
  stored(NULL, 0);
#endif
#ifdef IN_HEAP
  struct pawl_heap* heap = pawl_heap_open(arguments[1], NULL);
  if (heap == NULL) return refused(pawl_last_error());
  char* at = pawl_heap_malloc(heap, 1);
  if (at == NULL) return 5;
  store_there(at);
  pawl_heap_set_root(heap, at);
  if (pawl_heap_sync(heap) != 0) return 6;
  return 0;
#else
  const int descriptor = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (descriptor < 0 || ftruncate(descriptor, kBytes) != 0) return 7;
#if defined(IN_GROUP)
  struct pawl_group* group = pawl_group_open("group", NULL);
  if (group == NULL) return refused(pawl_last_error());
  char* at =
      pawl_group_mmap(group, NULL, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
#elif defined(PLAIN)
  char* at = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return kRefused;
#else
  char* at = pawl_mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor, 0);
#endif
#ifndef PLAIN
  if (at == MAP_FAILED) return refused(pawl_last_error());
#endif
  store_there(at);
#ifdef BY_NAME
  stored(at, 1);
#endif
#if defined(IN_GROUP)
  return pawl_group_msync(group, MS_SYNC) == 0 ? 0 : 8;
#elif defined(PLAIN)
  return msync(at, kBytes, MS_SYNC) == 0 ? 0 : 8;
#else
  return pawl_msync(at, kBytes, MS_SYNC) == 0 ? 0 : 8;
#endif
#endif
}

#endif
