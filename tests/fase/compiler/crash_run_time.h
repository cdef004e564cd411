/* A run-time for what was compiled with -fpawl=ido that crashes: in one thread, in one process,
 * after each of its calls in turn.  What a crash leaves of the persistent memory is drawn: of the
 * words stored since the last cut each is there or not.  Then the section is resumed, perhaps
 * crashes again, and in the end the memory has to be what it is behind that section without
 * crashes.
 *
 * On the way it finds stores that it was not told of, and such as no frame precedes. */
#ifndef PAWL_CRASH_RUN_TIME_H
#define PAWL_CRASH_RUN_TIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Persistent memory, all zeros at first. */
enum { kArenaBytes = 1 << 15 };
#define ARENA ((char*)0x0c0000000000)

/* The heap of the tests: pawl/fase.h's functions, in the arena behind the first kRootBytes. */
enum { kRootBytes = 1 << 14 };
void* pawl_fase_malloc(void* fase, size_t size);
void* pawl_fase_calloc(void* fase, size_t count, size_t size);
int pawl_fase_free(void* fase, void* block);
void* pawl_fase_root(void* fase);
int pawl_fase_set_root(void* fase, void* root);
void pawl_fase_begin(void);
void pawl_fase_end(void);

/* Volatile: while an operation is executed it says something of its number, and in recovery
 * something else.  Operations may read it. */
extern unsigned own_number;

/* The program's, if it has volatile memory that operations change outside of sections: called in
 * recovery, to have it hold something else.  Each operation begins with having it hold the same. */
extern void (*forget_volatile)(void);

/* The program's: operation number `number`.  What it stores into the arena it stores in
 * failure-atomic sections. */
void operation(unsigned number);

/* Executes operations 0, 1, ... count - 1, each with crashes as said, and prints a checksum of the
 * memory after each.  With -DPLAIN there are no crashes: for a program that is compiled as any
 * other. Returns the program's exit status.  Sections behind it do not crash. */
int run_operations(unsigned count);
/* The same, where operations are main(number, NULL): nobody calls that in a section. */
int run_operations_in_main(unsigned count);

/* Frames logged at cuts, so far, without those of operations that crash. */
unsigned cuts_so_far(void);

#ifdef __cplusplus
}
#endif
#endif
