/* What code compiled with -fpawl=ido, justdo or undo calls, and what it tells the run-time about
 * itself.
 *
 * This is the seam between compiler/fase/ and src/fase/; docs/fase-design.md tells how the two work
 * together, and its words (FASE, cut, frame, region, live-in) are used here.  Names and layouts are
 * repeated in compiler/fase/run_time_calls.cc, and tests/fase/ compiles both against each other.
 *
 * All functions are C, never throw, and may be called by any thread.  Those that take a site,
 * that is a function and the number of one of its regions, may end the calling thread's journey:
 * in recovery, control leaves by longjmp(3) when the FASE ends.  Unless it says otherwise a call
 * outside of a FASE does nothing. */
#ifndef PAWL_FASE_ABI_H
#define PAWL_FASE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where files of failure-atomic sections are mapped, and nothing else: a pointer leads into
 * persistent memory if (uint64_t)p - PAWL_FASE_WINDOW < PAWL_FASE_WINDOW_BYTES. */
#define PAWL_FASE_WINDOW ((uint64_t)0x0c0000000000)
#define PAWL_FASE_WINDOW_BYTES ((uint64_t)0x080000000000)

/* Live-ins of a region, as it stores them: each at a multiple of 8, in the order that the function
 * has for the region. */
#define PAWL_FASE_LIVE_IN_BYTES_MAX 384

enum pawl_fase_region_kind {
  PAWL_FASE_AT_CUT = 0,       /* begins at a cut */
  PAWL_FASE_AFTER_UNLOCK = 1, /* begins behind the release of a lock, which is done then */
  PAWL_FASE_AFTER_CALL = 2,   /* begins where a call has returned; its result is given */
};

struct pawl_fase_region {
  uint32_t line; /* in the source, 0 when it is not known */
  uint16_t live_in_bytes;
  uint16_t kind;
};

/* One for each function that has regions, in the section "pawl_fase_functions" of its object. */
struct pawl_fase_function {
  void (*address)(void); /* NOLINT(modernize-redundant-void-arg): this is C */
  /* Goes on at the beginning of the region, with the live-ins as they were logged, and for
   * PAWL_FASE_AFTER_CALL with the bytes that the call returned.  Stores the function's own result
   * where result says.  Does not come back when the FASE ends on the way. */
  void (*resume)(uint32_t region, const void* live_ins, const void* call_result, void* result);
  const char* name;   /* as in the source, demangled or not */
  const char* source; /* the file, or "" */
  const struct pawl_fase_region* regions;
  uint32_t region_count;
  uint32_t result_bytes; /* at most PAWL_FASE_LIVE_IN_BYTES_MAX */
};

/* Called once by a constructor of each object, with all of the program's: the linker gathers the
 * section.  Calls with a table that is known do nothing. */
void pawl_fase_register(const struct pawl_fase_function* begin,
                        const struct pawl_fase_function* end);

/* A variable of the program that sections of an object read behind their frames: what it holds is
 * in the frames.  In the section "pawl_fase_kept" of the object. */
struct pawl_fase_kept {
  const void* address;
  uint64_t size_bytes;
  const char* name;
  const char* source; /* the object's */
};

/* Called as pawl_fase_register(), and before it.  A FASE that changes one of them is refused, as by
 * pawl_fase_refuse(), but also when it has no frame: others that were interrupted with it would not
 * see the change when they are resumed. */
void pawl_fase_keep(const struct pawl_fase_kept* begin, const struct pawl_fase_kept* end);

/* Which scheme the object was compiled for: called by a constructor of each, before a file is
 * opened. Where nobody calls it is iDO. */
#define PAWL_FASE_SCHEME_IDO 0u
#define PAWL_FASE_SCHEME_JUSTDO 1u
#define PAWL_FASE_SCHEME_UNDO 2u
void pawl_fase_use_scheme(uint32_t scheme);

/* --- regions ------------------------------------------------------------------------------- */

/* A region ends here, and this one begins.  On return all that the former stored is durable, and
 * after a crash the FASE goes on here. */
void pawl_fase_cut(const struct pawl_fase_function* function, uint32_t region,
                   const void* live_ins);

/* Around a call of a function that may cut: where the caller goes on, for whoever resumes the
 * callee.  The region's kind is PAWL_FASE_AFTER_CALL. */
void pawl_fase_call(const struct pawl_fase_function* function, uint32_t region,
                    const void* live_ins);
void pawl_fase_return(void);

/* Around an indirect call, in place of pawl_fase_call: the same.  A callee that is no registered
 * function is refused as by pawl_fase_refuse(), also when the FASE has no frame yet. */
void pawl_fase_call_indirect(const struct pawl_fase_function* function, uint32_t region,
                             const void* live_ins, const void* callee);

/* Around what a function does that the kernel may call as a handler of a signal, with the address
 * that it returns to: in a handler the section that the signal interrupts is out of sight, all
 * other calls are outside of it, and what is stored is durable at once.  The second takes what the
 * first has returned. */
void* pawl_fase_handler_begin(const void* returns_to);
void pawl_fase_handler_end(void* entered);

/* --- memory -------------------------------------------------------------------------------- */

/* The bytes were stored, in a FASE or before one.  Ignored outside of the window.  They are durable
 * when the thread's next frame is, and before it releases any lock.  In a FASE the program ends,
 * with a text, when there was no cut since a lock was taken, or since the return of a function that
 * logged a frame: but for blocks that the FASE has allocated and not published. */
void pawl_fase_stored(const void* at, size_t bytes);

/* The scheme undo, before such a store in a FASE: what stands there is durable in the log on
 * return. Ignored outside of the window. */
void pawl_fase_undo(const void* at, size_t bytes);

/* For addresses outside of the window only.  Where to store: `at`, which is refused if variables
 * are kept there (pawl_fase_keep()); but in recovery, where the dead process's own memory is no
 * more, a place that nobody reads, with room for as many bytes, until the next call.  It is aligned
 * for all stores. */
void* pawl_fase_volatile_target(void* at, size_t bytes);

/* For addresses outside of the window only, before a load.  A load of volatile memory cannot be
 * repeated in recovery: so it must come before the FASE's first frame.  Later ones are refused:
 * told once on standard error, and when the FASE has ended the program is (SIGABRT).  In
 * recovery: the recovery of this FASE fails. */
void pawl_fase_volatile_load(const struct pawl_fase_function* function, uint32_t line,
                             const void* at);

/* The same for what cannot be resumed at all, such as a call into code that was not compiled so. */
void pawl_fase_refuse(const struct pawl_fase_function* function, uint32_t line, const char* what);

/* The same, also when the FASE has no frame yet: of what may call a function that logs one. */
void pawl_fase_refuse_unarmed(const struct pawl_fase_function* function, uint32_t line,
                              const char* what);

/* --- locks --------------------------------------------------------------------------------- */

/* As their namesakes of POSIX and C11, and with the same results; in and out of FASEs.  A lock in
 * the window needs no making anew after a crash: it is free then.  Of the unlocks, function may be
 * NULL where it is known that no other lock is held; then there is no region.  An unlock with
 * others held logs a frame at its region if the thread's last frame names the lock, and is no cut
 * else. */
int pawl_fase_mutex_init(void* mutex, const void* attributes);
int pawl_fase_mutex_destroy(void* mutex);
int pawl_fase_mutex_lock(void* mutex);
int pawl_fase_mutex_trylock(void* mutex);
int pawl_fase_mutex_timedlock(void* mutex, const void* until_timespec);
int pawl_fase_mutex_unlock(void* mutex, const struct pawl_fase_function* function, uint32_t region,
                           const void* live_ins);
int pawl_fase_rwlock_init(void* lock, const void* attributes);
int pawl_fase_rwlock_destroy(void* lock);
int pawl_fase_rwlock_rdlock(void* lock);
int pawl_fase_rwlock_tryrdlock(void* lock);
int pawl_fase_rwlock_wrlock(void* lock);
int pawl_fase_rwlock_trywrlock(void* lock);
int pawl_fase_rwlock_unlock(void* lock, const struct pawl_fase_function* function, uint32_t region,
                            const void* live_ins);
int pawl_fase_spin_init(void* lock, int shared);
int pawl_fase_spin_destroy(void* lock);
int pawl_fase_spin_lock(void* lock);
int pawl_fase_spin_trylock(void* lock);
int pawl_fase_spin_unlock(void* lock, const struct pawl_fase_function* function, uint32_t region,
                          const void* live_ins);
/* The mutex must be the only lock held: the FASE ends, and another begins on return.  Else EPERM,
 * and nothing has happened. */
int pawl_fase_cond_init(void* condition, const void* attributes);
int pawl_fase_cond_destroy(void* condition);
int pawl_fase_cond_wait(void* condition, void* mutex);
int pawl_fase_cond_timedwait(void* condition, void* mutex, const void* until_timespec);
int pawl_fase_cond_clockwait(void* condition, void* mutex, int clock, const void* until_timespec);
int pawl_fase_cond_signal(void* condition);
int pawl_fase_cond_broadcast(void* condition);

/* What pawl_fase_begin() and pawl_fase_end() of pawl/fase.h become: a lock that nobody else has. */
void pawl_fase_section_begin(void);
void pawl_fase_section_end(const struct pawl_fase_function* function, uint32_t region,
                           const void* live_ins);

#ifdef __cplusplus
}
#endif
#endif
