/* Failure-atomic sections: what a thread does while it holds a lock happens whole, or not at all,
 * whatever crashes in between.
 *
 * Open a file with pawl_fase_open(), build data structures in it of plain pointers, protect them by
 * the locks of POSIX or C11, and compile with pawl-clang -fpawl=ido and link with -no-pie.  From
 * taking the first lock to releasing the last one a thread is in a failure-atomic section (FASE).
 * After a crash the next pawl_fase_open() finishes the sections that were interrupted, by executing
 * what was left of them.  docs/fase.md tells what a program has to keep to.
 *
 * This is iDO (Liu, Izraelevitz, Lee, Scott, Noh and Jung: "iDO: Compiler-Directed Failure
 * Atomicity for Nonvolatile Memory", MICRO 2018).
 *
 * Conventions, beside those of pawl/pawl.h:
 *   - The file is mapped shared, at the address that it records: stores are in it at once.  In
 *     persistent memory (a file system mounted with dax) a section survives the loss of power; in
 *     every other file, and on /dev/shm, only the death of the process.
 *   - A process has one such file open at a time.
 *   - All functions may be called from any thread; pawl_fase_close only when no other call or
 *     section uses the file.
 *   - A forked child has no part in the file: its memory is not there, and calls fail with EPERM.
 *   - What is stored outside of sections is durable when the thread's next section that stores has
 *     begun, when the thread releases a lock, or with pawl_fase_persist.
 */
#ifndef PAWL_FASE_H
#define PAWL_FASE_H

#include <pawl/pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bounds.  The size counts address space and the file's length, not disk. */
#define PAWL_FASE_SIZE_MIN ((uint64_t)1 << 20)
#define PAWL_FASE_SIZE_MAX ((uint64_t)1 << 40)
#define PAWL_FASE_SIZE_DEFAULT ((uint64_t)64 << 30)
#define PAWL_FASE_THREADS_MAX 256 /* that use the file at a time */
#define PAWL_FASE_LOCKS_MAX 32    /* that a thread holds at a time */
#define PAWL_FASE_DEPTH_MAX 32    /* of calls in a section */
#define PAWL_FASE_BLOCKS_MAX 1023 /* allocated and freed in a region of a section */

/* The address of the file's memory: the same in every run. */
typedef struct pawl_fase pawl_fase;

struct pawl_fase_options {
  /* sizeof(struct pawl_fase_options); set by pawl_fase_options_init. */
  size_t struct_size_bytes;
  /* How much a new file can hold, in blocks and what they need beside.  An existing file keeps what
   * it records. */
  uint64_t size_bytes_max;
  /* 1: nothing is logged, written back or waited for.  It protects nothing: a file that was open so
   * when its program ended is refused from then on.  To measure what protection costs, against
   * programs that were compiled without it (-fpawl=none), in which pawl_fase_begin and
   * pawl_fase_end do nothing then. */
  int unprotected;
  /* For tests of programs, and of the compiler: so many of a hundred regions are executed again
   * when they end, as recovery would; the program is ended, with a text that says where, when
   * anything is not the same then.  PAWL_FASE_TWICE; 0. */
  int twice_percent;
  /* 1: all is logged, and nothing written back or waited for: sections survive the death of the
   * process, and a loss of power only where something else saves the caches when it comes: a
   * platform with eADR, or a battery.  PAWL_FASE_FLUSH=commit|on-fail; 0. */
  int flush_on_fail;
};

/* Fills options with the defaults, then with what PAWL_FASE_TWICE and PAWL_FASE_FLUSH say. */
PAWL_PUBLIC int pawl_fase_options_init(struct pawl_fase_options* options);

/* Opens the file at path, or makes one when there is none or an empty one; finishes first the
 * sections that a crash interrupted.  On return a new file is durable.  NULL options mean
 * pawl_fase_options_init's.  Returns NULL on failure:
 *   EINVAL           the file is another one
 *   ENOTSUP          its format is newer; or the program is not linked so that its sections could
 *                    be finished: with -no-pie, and a build-id
 *   EADDRINUSE       something else is mapped at its address; the text says what
 *   EBUSY            it is open already, in this process or another; or it is mapped with a journal
 *                    (pawl_mmap), or a crash left it so: the text says what to do
 *   ENFILE           this process has another one open
 *   ENOEXEC          there are sections to finish, of another program; pawl(1) tells how
 *   ENOTRECOVERABLE  a section cannot be finished; the text says why.  Nothing is lost: it stays
 *                    for the next try
 *   EUCLEAN          it is damaged
 *   EPERM            in a forked child
 * and whatever open(2), mmap(2) and fallocate(2) may give. */
PAWL_PUBLIC pawl_fase* pawl_fase_open(const char* path, const struct pawl_fase_options* options);

/* Makes durable what the threads stored, and closes.  EBUSY: a thread holds a lock; the file stays
 * open.  Pointers into the file are dead afterwards. */
PAWL_PUBLIC int pawl_fase_close(pawl_fase* fase);

/* The root: where a program finds its data again.  NULL until it is set.  Must point into the file
 * or be NULL, else EINVAL.  In a section set as any store is, else durable on return. */
PAWL_PUBLIC void* pawl_fase_root(pawl_fase* fase);
PAWL_PUBLIC int pawl_fase_set_root(pawl_fase* fase, void* root);

/* As malloc(3) and its kin: blocks are aligned to 16 bytes.  In a section they are allocated and
 * freed when a lock is released, with all else that the section did; a block that is freed is not
 * given to others before.  Outside of sections they are, durably, on return.  In a section that
 * stores nothing each of them takes effect by itself.  NULL, or -1, with
 *   ENOMEM  the file is full
 *   ENOSPC  there is no space for it on its file system; or a section allocates and frees more than
 *           PAWL_FASE_BLOCKS_MAX blocks between two cuts
 *   EBUSY   in a signal handler that interrupts a section
 *   EINVAL  of pawl_fase_free: no allocated block begins there */
PAWL_PUBLIC void* pawl_fase_malloc(pawl_fase* fase, size_t size);
PAWL_PUBLIC void* pawl_fase_calloc(pawl_fase* fase, size_t count, size_t size);
PAWL_PUBLIC int pawl_fase_free(pawl_fase* fase, void* block);

/* Bytes that the block can hold, at least what was asked for.  0 with EINVAL when it is none. */
PAWL_PUBLIC size_t pawl_fase_usable_size(pawl_fase* fase, const void* block);

/* A section without a lock, for data that no other thread uses.  They nest.  The compiler has its
 * own calls for these: in a program that was not compiled with -fpawl=ido they end it, with a text
 * that says so. */
PAWL_PUBLIC void pawl_fase_begin(void);
PAWL_PUBLIC void pawl_fase_end(void);

/* Durable on return, for what was stored by hand, outside of sections.  The bytes must be in the
 * file, else EINVAL. */
PAWL_PUBLIC int pawl_fase_persist(const void* at, size_t bytes);

struct pawl_fase_statistics {
  uint64_t sections;           /* begun */
  uint64_t sections_armed;     /* of those, that logged a frame: the others stored nothing */
  uint64_t frames;             /* logged; of callers and ends, too */
  uint64_t fences;             /* waited for */
  uint64_t lines_flushed;      /* 64 bytes each */
  uint64_t bytes_logged;       /* in frames */
  uint64_t sections_recovered; /* by pawl_fase_open */
  int survives_power_loss;     /* 0: only the death of the process, or what saves caches */
};

/* Since the file was opened, of all threads. */
PAWL_PUBLIC int pawl_fase_stats(pawl_fase* fase, struct pawl_fase_statistics* statistics);

#ifdef __cplusplus
}
#endif
#endif
