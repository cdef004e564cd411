#define _GNU_SOURCE
#include "crash_run_time.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kDepthMax = 200, kLocksMax = 64, kTriesMax = 60, kSectionsMax = 64 };

static unsigned checksum(void) {
  unsigned sum = 1;
  for (int i = 0; i < kArenaBytes; ++i) sum = sum * 31 + (unsigned char)ARENA[i];
  return sum;
}

static void map_arena(void) {
  void* at = mmap(ARENA, kArenaBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at != ARENA) abort();
}

static size_t allocated = kRootBytes;

static void* allocate(size_t size) {
  size = (size + 15) & ~(size_t)15;
  if (size == 0 || size > kArenaBytes - allocated) return NULL;
  void* block = ARENA + allocated;
  allocated += size;
  return block;
}

static void event(const char* what);

void* pawl_fase_malloc(void* fase, size_t size) {
  (void)fase;
  event("malloc");
  return allocate(size);
}
void* pawl_fase_calloc(void* fase, size_t count, size_t size) {
  (void)fase;
  event("calloc");
  return allocate(count * size);
}
int pawl_fase_free(void* fase, void* block) {
  (void)fase;
  (void)block;
  event("free");
  return 0;
}
void* pawl_fase_root(void* fase) {
  (void)fase;
  return ARENA;
}

unsigned own_number;
static unsigned setting_of(unsigned number_of_operation) { return 3 * number_of_operation + 1; }

void (*forget_volatile)(void);

#pragma weak operation /* not there where operations are in main() */
int main(int number, char** none);
static int are_in_main;
static void execute(unsigned number) {
  if (are_in_main) {
    main((int)number, NULL);
  } else {
    operation(number);
  }
}
int run_operations_in_main(unsigned count) {
  are_in_main = 1;
  return run_operations(count);
}

#ifdef PLAIN

static void event(const char* what) { (void)what; }
void pawl_fase_begin(void) {}
void pawl_fase_end(void) {}
/* Instead of the C library's, which leave a lock that was released other than it was. */
int pthread_rwlock_rdlock(void* lock) { return (void)lock, 0; }
int pthread_rwlock_tryrdlock(void* lock) { return (void)lock, 0; }
int pthread_rwlock_wrlock(void* lock) { return (void)lock, 0; }
int pthread_rwlock_trywrlock(void* lock) { return (void)lock, 0; }
int pthread_rwlock_unlock(void* lock) { return (void)lock, 0; }
unsigned cuts_so_far(void) { return 0; }

int run_operations(unsigned count) {
  map_arena();
  for (unsigned i = 0; i < count; ++i) {
    own_number = setting_of(i);
    execute(i);
    printf("%u %u\n", i, checksum());
  }
  return 0;
}

#else

#include "fase/abi.h"

struct frame {
  const struct pawl_fase_function* function;
  uint32_t region;
  char live_ins[PAWL_FASE_LIVE_IN_BYTES_MAX];
};

/* Where a thread would go on: a frame and those of its callers, the outermost first. */
struct journey {
  struct frame frames[kDepthMax];
  unsigned depth; /* of the innermost, which is frames[depth] */
  void* locks[kLocksMax];
  unsigned lock_count;
  size_t allocated;
};

static struct journey now;    /* frames[0..depth - 1] are those of callers */
static struct journey logged; /* with the last frame */
static int armed, recovering;
static char at_cut[kArenaBytes]; /* what is durable for certain */
static char noted[kArenaBytes];  /* bytes stored since, as far as the run-time was told */
static char behind[kSectionsMax + 1][kArenaBytes]; /* what is there behind so many sections */
static unsigned ends;                              /* of sections of the operation */
static unsigned events, crash_at, events_of_recovery_max, failures, cuts, number_of_operation;
static int refused;
static jmp_buf crashed, finished;
static const struct pawl_fase_function* functions[2];

static void fail(const char* what, const char* detail, uintptr_t number) {
  fprintf(stderr, "operation %u, crash at %u: %s %s %#lx\n", number_of_operation, crash_at, what,
          detail, (unsigned long)number);
  if (++failures > 20) exit(1);
}

static int is_inside(void) { return now.lock_count != 0; }

/* What was stored must have been told of, and nothing is stored in a section that has no frame. */
static void check_stores(const char* when) {
  if (memcmp(ARENA, at_cut, kArenaBytes) == 0) return;
  for (int i = 0; i < kArenaBytes; ++i) {
    if (ARENA[i] == at_cut[i]) continue;
    if (!noted[i]) {
      fail("a store without a note, before", when, (uintptr_t)(ARENA + i));
      break;
    }
    if (is_inside() && !armed) {
      fail("a store without a cut, before", when, (uintptr_t)(ARENA + i));
      break;
    }
  }
}

static void make_durable(const char* when) {
  check_stores(when);
  memcpy(at_cut, ARENA, kArenaBytes);
  memset(noted, 0, kArenaBytes);
}

static unsigned draw(void) {
  static unsigned state = 12345;
  state = state * 1103515245u + 12345u;
  return state >> 16;
}

static void crash(void) {
  /* Of what was stored since the last cut, any words may have become durable. */
  unsigned kept = draw() % 3; /* all, none, or each as it comes */
  for (int i = 0; i < kArenaBytes; i += 8) {
    if (kept == 1 || (kept == 2 && draw() % 2 == 0)) memcpy(ARENA + i, at_cut + i, 8);
  }
  longjmp(crashed, 1);
}

static void event(const char* what) {
  (void)what;
  if (!is_inside()) return;
  if (++events == crash_at) crash();
}

static void log_frame(const struct pawl_fase_function* function, uint32_t region,
                      const void* live_ins) {
  struct frame* frame = &now.frames[now.depth];
  if (region >= function->region_count) fail("no such region:", function->name, region);
  frame->function = function;
  frame->region = region;
  memcpy(frame->live_ins, live_ins, function->regions[region].live_in_bytes);
  make_durable("a frame");
  now.allocated = allocated;
  logged = now;
  armed = 1;
}

void pawl_fase_register(const struct pawl_fase_function* begin,
                        const struct pawl_fase_function* end) {
  functions[0] = begin;
  functions[1] = end;
}

void pawl_fase_cut(const struct pawl_fase_function* function, uint32_t region,
                   const void* live_ins) {
  if (!is_inside()) return;
  event("before a cut");
  if (function->regions[region].kind != PAWL_FASE_AT_CUT) fail("kind of", function->name, region);
  log_frame(function, region, live_ins);
  ++cuts;
  event("behind a cut");
}

void pawl_fase_call(const struct pawl_fase_function* function, uint32_t region,
                    const void* live_ins) {
  if (!is_inside()) return;
  struct frame* frame = &now.frames[now.depth];
  frame->function = function;
  frame->region = region;
  if (function->regions[region].kind != PAWL_FASE_AFTER_CALL)
    fail("kind of", function->name, region);
  memcpy(frame->live_ins, live_ins, function->regions[region].live_in_bytes);
  if (++now.depth == kDepthMax) exit(2);
  event("call");
}

void pawl_fase_call_indirect(const struct pawl_fase_function* function, uint32_t region,
                             const void* live_ins, const void* callee) {
  if (!is_inside()) return;
  int known = 0;
  for (const struct pawl_fase_function* f = functions[0]; f != functions[1]; ++f) {
    known |= (const void*)f->address == callee;
  }
  if (!known) fail("an unknown function is called by", function->name, region);
  pawl_fase_call(function, region, live_ins);
}

void pawl_fase_return(void) {
  if (!is_inside()) return;
  if (now.depth == 0) fail("return", "without a call", 0);
  --now.depth;
  event("return");
}

/* No operation is a handler. */
void* pawl_fase_handler_begin(const void* returns_to) { return (void)returns_to, NULL; }
void pawl_fase_handler_end(void* interrupted) { (void)interrupted; }

void pawl_fase_stored(const void* at, size_t bytes) {
  if ((uintptr_t)at - PAWL_FASE_WINDOW >= PAWL_FASE_WINDOW_BYTES) return;
  memset(noted + ((const char*)at - ARENA), 1, bytes);
  event("stored");
}

int pawl_fase_set_root(void* fase, void* root) {
  (void)fase;
  memcpy(ARENA, &root, sizeof root);
  pawl_fase_stored(ARENA, sizeof root);
  return 0;
}

void pawl_fase_keep(const struct pawl_fase_kept* begin, const struct pawl_fase_kept* end) {
  (void)begin, (void)end;
}

void* pawl_fase_volatile_target(void* at, size_t bytes) {
  static void* sink;
  if (!is_inside() || !recovering) return at;
  free(sink);
  sink = malloc(bytes);
  return sink;
}

void pawl_fase_volatile_load(const struct pawl_fase_function* function, uint32_t line,
                             const void* at) {
  if (!is_inside() || !armed) return;
  if (recovering) fail("a volatile load in recovery, of", function->name, (uintptr_t)at);
  (void)line;
  ++refused;
}

void pawl_fase_refuse(const struct pawl_fase_function* function, uint32_t line, const char* what) {
  if (!is_inside()) return;
  (void)function;
  fail("refused:", what, line);
}

void pawl_fase_refuse_unarmed(const struct pawl_fase_function* function, uint32_t line,
                              const char* what) {
  pawl_fase_refuse(function, line, what);
}

/* --- locks ----------------------------------------------------------------------------------- */

static int is_held(const struct journey* journey, const void* lock) {
  for (unsigned i = 0; i < journey->lock_count; ++i) {
    if (journey->locks[i] == lock) return 1;
  }
  return 0;
}

static int take(void* lock) {
  if (is_held(&now, lock)) return 16; /* EBUSY */
  if (now.lock_count == 0) {
    make_durable("a section");
    armed = 0;
    now.depth = 0;
  }
  now.locks[now.lock_count++] = lock;
  event("lock");
  return 0;
}

static int release(void* lock, const struct pawl_fase_function* function, uint32_t region,
                   const void* live_ins) {
  if (!is_held(&now, lock)) {
    fail("released, and not held:", "", (uintptr_t)lock);
    return 1;
  }
  event("unlock");
  for (unsigned i = 0; i < now.lock_count; ++i) {
    if (now.locks[i] != lock) continue;
    now.locks[i] = now.locks[--now.lock_count];
    break;
  }
  if (now.lock_count == 0) {
    ++now.lock_count; /* it is still in the section, for checks */
    make_durable("the end");
    --now.lock_count;
    armed = 0;
    if (recovering) longjmp(finished, 1);
    if (++ends > kSectionsMax) exit(2);
    if (crash_at == 0) memcpy(behind[ends], ARENA, kArenaBytes);
    return 0;
  }
  if (function == NULL) fail("not the last lock:", "", (uintptr_t)lock);
  if (armed && is_held(&logged, lock)) {
    if (function->regions[region].kind != PAWL_FASE_AFTER_UNLOCK)
      fail("kind of", function->name, region);
    log_frame(function, region, live_ins);
  }
  event("unlocked");
  return 0;
}

int pawl_fase_mutex_init(void* mutex, const void* attributes) {
  return (void)mutex, (void)attributes, 0;
}
int pawl_fase_mutex_destroy(void* mutex) { return (void)mutex, 0; }
int pawl_fase_mutex_lock(void* mutex) { return take(mutex); }
int pawl_fase_mutex_trylock(void* mutex) { return take(mutex); }
int pawl_fase_mutex_timedlock(void* mutex, const void* until) { return (void)until, take(mutex); }
int pawl_fase_mutex_unlock(void* mutex, const struct pawl_fase_function* function, uint32_t region,
                           const void* live_ins) {
  return release(mutex, function, region, live_ins);
}
int pawl_fase_rwlock_init(void* lock, const void* attributes) {
  return (void)lock, (void)attributes, 0;
}
int pawl_fase_rwlock_destroy(void* lock) { return (void)lock, 0; }
int pawl_fase_rwlock_rdlock(void* lock) { return take(lock); }
int pawl_fase_rwlock_tryrdlock(void* lock) { return take(lock); }
int pawl_fase_rwlock_wrlock(void* lock) { return take(lock); }
int pawl_fase_rwlock_trywrlock(void* lock) { return take(lock); }
int pawl_fase_rwlock_unlock(void* lock, const struct pawl_fase_function* function, uint32_t region,
                            const void* live_ins) {
  return release(lock, function, region, live_ins);
}
int pawl_fase_spin_init(void* lock, int shared) { return (void)lock, (void)shared, 0; }
int pawl_fase_spin_destroy(void* lock) { return (void)lock, 0; }
int pawl_fase_spin_lock(void* lock) { return take(lock); }
int pawl_fase_spin_trylock(void* lock) { return take(lock); }
int pawl_fase_spin_unlock(void* lock, const struct pawl_fase_function* function, uint32_t region,
                          const void* live_ins) {
  return release(lock, function, region, live_ins);
}

static char section;
void pawl_fase_section_begin(void) { take(&section); }
void pawl_fase_section_end(const struct pawl_fase_function* function, uint32_t region,
                           const void* live_ins) {
  release(&section, function, region, live_ins);
}

/* --- operations with crashes ------------------------------------------------------------------ */

unsigned cuts_so_far(void) { return cuts; }

/* The innermost frame's function first, then its callers; the section's end does not come back. */
static void resume(void) {
  char result[2][PAWL_FASE_LIVE_IN_BYTES_MAX];
  memset(result, 0, sizeof result);
  now = logged;
  allocated = logged.allocated;
  for (unsigned turn = 0;; ++turn) {
    const struct frame frame = now.frames[now.depth];
    frame.function->resume(frame.region, frame.live_ins, result[turn % 2], result[(turn + 1) % 2]);
    if (now.depth == 0) break;
    --now.depth;
  }
  fail("resumed to the end, with a lock", "", now.lock_count);
}

/* What a dead process had on its stack is not there. */
static __attribute__((noinline)) void overwrite_stack(void) {
  volatile char bytes[1 << 15];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (char)0xa5;
}

/* With crashes in recovery, too. */
static void recover(void) {
  volatile unsigned turns = 0;
  recovering = 1;
  own_number = ~setting_of(number_of_operation);
  now.lock_count = 0; /* this is no section's */
  if (forget_volatile != NULL) forget_volatile();
  if (setjmp(crashed) != 0) ++turns;
  memcpy(at_cut, ARENA, kArenaBytes);
  memset(noted, 0, kArenaBytes);
  crash_at = turns < 3 && events_of_recovery_max != 0 ? 1 + draw() % events_of_recovery_max : 0;
  events = 0;
  overwrite_stack();
  if (setjmp(finished) == 0) resume();
  recovering = 0;
}

int run_operations(unsigned count) {
  static char after[kArenaBytes];
  map_arena();
  for (unsigned i = 0; i < count; ++i) {
    number_of_operation = i;
    own_number = setting_of(i);
    const size_t allocated_before = allocated;
    memcpy(behind[0], ARENA, kArenaBytes);
    memcpy(at_cut, ARENA, kArenaBytes);
    events = crash_at = ends = 0;
    now.lock_count = 0;
    execute(i);
    if (is_inside()) fail("an operation ends with a lock", "", 0);
    const size_t allocated_after = allocated;
    const unsigned events_of_operation = events;
    const unsigned cuts_after = cuts;
    memcpy(after, ARENA, kArenaBytes);
    printf("%u %u\n", i, checksum());
    const unsigned tries = events_of_operation < kTriesMax ? events_of_operation : kTriesMax;
    for (unsigned k = 1; k <= 2 * tries; ++k) {
      memcpy(ARENA, behind[0], kArenaBytes);
      memcpy(at_cut, behind[0], kArenaBytes);
      memset(noted, 0, kArenaBytes);
      allocated = allocated_before;
      now.lock_count = 0;
      events = ends = 0;
      own_number = setting_of(i);
      const unsigned at =
          tries == events_of_operation ? 1 + (k - 1) / 2 : 1 + draw() % events_of_operation;
      crash_at = at;
      events_of_recovery_max = k % 2 == 0 ? events_of_operation + 2 : 0;
      if (setjmp(crashed) == 0) {
        execute(i);
        fail("the crash did not come", "", at);
        continue;
      }
      const int has_frame = armed;
      if (has_frame) recover();
      const char* right = behind[has_frame ? ends + 1 : ends];
      if (memcmp(ARENA, right, kArenaBytes) != 0) {
        for (int b = 0; b < kArenaBytes; ++b) {
          if (ARENA[b] == right[b]) continue;
          crash_at = at;
          fail("another outcome", has_frame ? "than without a crash" : "without a frame",
               (uintptr_t)(ARENA + b));
          break;
        }
      }
      now.lock_count = 0;
      armed = 0;
    }
    memcpy(ARENA, after, kArenaBytes);
    memset(noted, 0, kArenaBytes);
    memcpy(at_cut, after, kArenaBytes);
    allocated = allocated_after;
    cuts = cuts_after;
  }
  crash_at = ends = 0; /* what the program does behind is left alone */
  if (refused != 0) fprintf(stderr, "volatile loads refused: %d\n", refused), ++failures;
  return failures != 0;
}

#endif
