/* malloc() as a signal interrupts it, and the start of a thread that calls it so: no code that was
 * compiled for sections has run there before.  No signal handler may come here meanwhile. */
#include <signal.h>
#include <stdlib.h>

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void __libc_free(void* block);

void* allocate(void* unused);

static _Thread_local int is_to_be_interrupted;
/* raise() is declared as what calls nobody back. */
static _Thread_local volatile int inside;

static void enter(void) {
  if (inside != 0) abort();
}

void* malloc(size_t bytes) {
  enter();
  inside = is_to_be_interrupted;
  if (is_to_be_interrupted) raise(SIGUSR1);
  inside = 0;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  enter();
  return __libc_calloc(count, bytes);
}
void free(void* block) {
  enter();
  __libc_free(block);
}

void* allocate(void* unused) {
  is_to_be_interrupted = 1;
  free(malloc(1000));
  is_to_be_interrupted = 0;
  return unused;
}
