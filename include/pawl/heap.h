/* A persistent heap: malloc and free in a file that is crash-proof.
 *
 * A heap is a file that is mapped atomically (pawl/pawl.h) at the address that it records, so that
 * plain pointers into it stay valid from run to run.  Allocate, build data structures of ordinary
 * pointers, make them reachable from the root, and call pawl_heap_sync() whenever they are
 * consistent: after a crash the heap is as the last successful sync left it, allocator and all.
 * The interface follows section 4.1 of Park, Kelly and Shen, "Failure-atomic msync()"
 * (EuroSys 2013).  pawl/heap.hpp puts the C++ containers on it.
 *
 * Conventions, beside those of pawl/pawl.h:
 *   - All functions may be called from any thread, also at once; but pawl_heap_close only when no
 *     other call uses the heap.  No thread may store into the heap while pawl_heap_sync or
 *     pawl_heap_rollback runs; allocations then wait.
 *   - In a forked child the heap's memory can be read, by pointers that are known; calls on it fail
 *     with EPERM, but for pawl_heap_close, which takes the child's copy away.  Then the child may
 *     open the heap itself, once its parent has closed it.
 *   - Misuse (a double free, a pointer that is no block's, a block whose bookkeeping was
 *     overwritten) is refused where it is found: -1 or NULL, errno, and a text.  Once an
 *     allocation, a free or a sync found it, every sync fails with EUCLEAN, so that nothing of it
 *     reaches the file, until pawl_heap_rollback or a new open brings back the last synced state.
 *   - The heap must hold no pointers to what lies outside it: to the stack, to malloc's memory, to
 *     functions, to virtual tables.  They do not survive the process.  pawl_heap_verify finds them.
 */
#ifndef PAWL_HEAP_H
#define PAWL_HEAP_H

#include <pawl/pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bounds.  The size of a heap counts address space and the file's length, not disk: what was never
 * used is a hole. */
#define PAWL_HEAP_SIZE_MIN ((uint64_t)8 << 20)
#define PAWL_HEAP_SIZE_MAX ((uint64_t)8 << 40)
#define PAWL_HEAP_SIZE_DEFAULT ((uint64_t)64 << 30)
#define PAWL_HEAP_ALIGNMENT_MAX ((size_t)64 << 10)
#define PAWL_HEAP_NAME_MAX 47    /* bytes of a root's name, without the terminating zero */
#define PAWL_HEAP_ROOTS_MAX 1024 /* named roots of a heap */
#define PAWL_HEAPS_MAX 64        /* open heaps of a process */

/* Where heaps are mapped (in programs that the thread sanitizer watches, elsewhere). */
#define PAWL_HEAP_ADDRESS_MIN ((uint64_t)0x160000000000)
#define PAWL_HEAP_ADDRESS_MAX ((uint64_t)0x2a0000000000)

typedef struct pawl_heap pawl_heap;

struct pawl_heap_options {
  /* sizeof(struct pawl_heap_options); set by pawl_heap_options_init. */
  size_t struct_size_bytes;
  /* How far the heap may grow, in multiples of 4 MiB: a new heap's default is
   * PAWL_HEAP_SIZE_DEFAULT.  An existing heap keeps what it records, or takes this if it is more.
   * 0: the default, or what is recorded. */
  uint64_t size_bytes_max;
  /* Where a new heap is to be mapped in all its life: a multiple of 4 MiB, such that its maximum
   * ends between PAWL_HEAP_ADDRESS_MIN and PAWL_HEAP_ADDRESS_MAX.  For heaps that are made apart
   * and will be open together: give each a range of its own.  An existing heap keeps what it
   * records.  0: drawn at random. */
  uint64_t address;
  /* What the data's layout depends on beside the machine, such as pawl/heap.hpp's text about the
   * C++ library; at most 63 bytes.  NULL: nothing, as for data of plain C.  A heap that records
   * another text is refused with ENOTSUP; one that records none takes this one for good. */
  const char* layout;
  /* Every sync first verifies as pawl_heap_verify does, and fails with EFAULT when a pointer leads
   * outside, and with EDEADLK when a lock is held.  For debugging: it reads all that is allocated.
   * PAWL_HEAP_VERIFY=1. */
  int verify;
  /* Of the mapping below.  PAWL_* as in pawl_options_init. */
  struct pawl_options mapping;
};

/* Fills options with the defaults, then with what PAWL_* environment variables say. */
PAWL_PUBLIC int pawl_heap_options_init(struct pawl_heap_options* options);

/* Opens the heap in the file at path, or makes one when there is no file or an empty one; recovers
 * it first when a crash left it.  The time does not depend on the heap's size.  On return a new
 * heap is durable.  NULL options mean pawl_heap_options_init's.  Returns NULL on failure:
 *   EINVAL      the file is no heap
 *   ENOTSUP     its format is newer, or it was written on another machine or with another layout
 *   EADDRINUSE  something else is mapped where the heap's bytes must be; the text says what
 *   EBUSY       it is open already, in this process or another
 *   ENFILE      this process has PAWL_HEAPS_MAX open heaps
 *   ENOMEM      there is no address space for its maximum
 *   EUCLEAN     its header is damaged, or the file was cut
 * and whatever pawl_mmap may give. */
PAWL_PUBLIC pawl_heap* pawl_heap_open(const char* path, const struct pawl_heap_options* options);

/* Closes the heap and frees the handle, whatever is returned.  What was not synced is discarded.
 * In a forked child it takes the child's copy away, and touches neither file nor journal.
 * Failures as of pawl_munmap. */
PAWL_PUBLIC int pawl_heap_close(pawl_heap* heap);

/* As malloc(3) and its kin: blocks are aligned to 16 bytes, and a size of 0 gives a block of its
 * own.  pawl_heap_malloc's bytes are not cleared, pawl_heap_calloc's are.  NULL with ENOMEM when
 * the heap would grow beyond its maximum, EUCLEAN when its bookkeeping is damaged.  A block that
 * pawl_heap_realloc moves is aligned to 16 bytes, however it was allocated.
 * pawl_heap_aligned_alloc takes a power of two up to PAWL_HEAP_ALIGNMENT_MAX. */
PAWL_PUBLIC void* pawl_heap_malloc(pawl_heap* heap, size_t size);
PAWL_PUBLIC void* pawl_heap_calloc(pawl_heap* heap, size_t count, size_t size);
PAWL_PUBLIC void* pawl_heap_realloc(pawl_heap* heap, void* block, size_t size);
PAWL_PUBLIC void* pawl_heap_aligned_alloc(pawl_heap* heap, size_t alignment, size_t size);

/* Frees a block; NULL is nothing to do.  -1 with EINVAL when it is no allocated block of this heap
 * (freed before, never allocated, of malloc, of another heap), EUCLEAN when bookkeeping is damaged.
 */
PAWL_PUBLIC int pawl_heap_free(pawl_heap* heap, void* block);

/* Bytes that the block can hold, at least what was asked for.  0 with EINVAL when it is none. */
PAWL_PUBLIC size_t pawl_heap_usable_size(pawl_heap* heap, const void* block);

/* The root: where a program finds its data again.  NULL until it is set.  Must point into the heap
 * or be NULL, else EINVAL. */
PAWL_PUBLIC void* pawl_heap_root(pawl_heap* heap);
PAWL_PUBLIC int pawl_heap_set_root(pawl_heap* heap, void* root);

/* Roots with names of 1 to PAWL_HEAP_NAME_MAX bytes, and an opaque number of the caller's, such as
 * a type's fingerprint (type_tag may be NULL).  Setting NULL removes the name.  ENOENT: there is no
 * such name; ENOSPC: there are PAWL_HEAP_ROOTS_MAX. */
PAWL_PUBLIC void* pawl_heap_named_root(pawl_heap* heap, const char* name, uint64_t* type_tag);
PAWL_PUBLIC int pawl_heap_set_named_root(pawl_heap* heap, const char* name, void* root,
                                         uint64_t type_tag);

/* Makes everything since the last sync durable, in one atomic step.  EUCLEAN: since the last sync
 * the heap was misused, or a header or root that would be committed was overwritten.  EFAULT: the
 * heap is opened to verify, and pointers lead outside.  EDEADLK: it is, and a lock in it is held.
 * Then nothing was committed.  Otherwise as pawl_msync(MS_SYNC): after ENOSPC call again, EIO is
 * final. */
PAWL_PUBLIC int pawl_heap_sync(pawl_heap* heap);

/* Takes everything back to the last sync.  Pointers to what was allocated since then are dead. */
PAWL_PUBLIC int pawl_heap_rollback(pawl_heap* heap);

/* Tells of one fault.  text says where and what, and is valid during the call.  The heap is locked
 * meanwhile: the function must not call any other on it. */
typedef void pawl_heap_report(void* context, const char* text);

/* Checks all bookkeeping of the heap as it stands in memory.  Returns the number of faults; each is
 * told to report, unless that is NULL.  -1 when it cannot look. */
PAWL_PUBLIC long pawl_heap_check(pawl_heap* heap, pawl_heap_report* report, void* context);

/* Looks at every aligned word of every allocated block, and returns the number of those that hold a
 * pointer out of the heap, into any other memory of this process, and of the mutexes and writers'
 * rwlocks there (std::mutex, std::shared_mutex) that a thread of this process holds.  Data that
 * looks like such a pointer or lock by chance, or that was left in a block's unused bytes, is told
 * of, too.  -1 when it
 * cannot look. */
PAWL_PUBLIC long pawl_heap_verify(pawl_heap* heap, pawl_heap_report* report, void* context);

#define PAWL_HEAP_SIZE_CLASSES_MAX 96

struct pawl_heap_size_class {
  uint64_t block_size_bytes;
  uint64_t blocks_used;
  uint64_t blocks_free; /* in slabs of this class */
};

struct pawl_heap_information {
  uint64_t address;        /* where it is mapped, in every run */
  uint64_t size_bytes;     /* of the file now */
  uint64_t size_bytes_max; /* how far it may grow */
  uint64_t blocks_used;    /* allocated blocks */
  uint64_t bytes_used;     /* that they can hold */
  uint64_t bytes_free;     /* that can be allocated before the file must grow */
  uint64_t bytes_overhead; /* bookkeeping: the rest of the file */
  /* The largest block that needs no growth; beside bytes_free, a measure of fragmentation. */
  uint64_t free_block_bytes_max;
  uint64_t large_blocks_used; /* of blocks_used, those in pages of their own */
  uint64_t large_bytes_used;
  uint32_t named_roots;
  uint32_t size_classes; /* filled entries below */
  struct pawl_heap_size_class classes[PAWL_HEAP_SIZE_CLASSES_MAX];
  /* Machine and layout that the heap records, as text. */
  char machine[64];
  char layout[64];
};

/* Counts.  Walks the heap's bookkeeping, so its time follows the heap's size. */
PAWL_PUBLIC int pawl_heap_info(pawl_heap* heap, struct pawl_heap_information* information);

/* The counters of the mapping below: commits, bytes logged, lines changed, pages touched. */
PAWL_PUBLIC int pawl_heap_stats(pawl_heap* heap, struct pawl_statistics* statistics);

/* The open heap of this process whose address range holds address; NULL when there is none. */
PAWL_PUBLIC pawl_heap* pawl_heap_of(const void* address);

/* The heap that C++ allocators use which were given none: the one opened first and still open, or
 * the last one given to pawl_heap_set_default.  NULL when none is open. */
PAWL_PUBLIC pawl_heap* pawl_heap_default(void);
PAWL_PUBLIC int pawl_heap_set_default(pawl_heap* heap);

/* 64 bytes of the heap, at the same address in every run, that pawl/heap.hpp keeps for its
 * std::pmr::memory_resource. */
PAWL_PUBLIC void* pawl_heap_resource_place(pawl_heap* heap);

#ifdef __cplusplus
}
#endif
#endif
