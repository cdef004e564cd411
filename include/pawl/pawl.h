/* Pawl: failure-atomic msync().
 *
 * Map a file with pawl_mmap(..., MAP_ATOMIC, ...), change it with plain loads and stores, and call
 * pawl_msync(): the file moves from one consistent state to the next, whole or not at all, whatever
 * crashes or loses power in between.  The interface follows Park, Kelly and Shen, "Failure-atomic
 * msync()" (EuroSys 2013), and keeps the argument order, return values and errno habits of POSIX.
 *
 * Conventions, true of every function here:
 *   - Sizes and offsets are in bytes.  Addresses and file offsets given to mmap and msync are
 *     multiples of the page size (4096).
 *   - On failure a function returns -1 (or MAP_FAILED), sets errno, and leaves a sentence that says
 *     what to do in pawl_last_error(), and a number for the condition in pawl_last_error_code().
 *   - All functions may be called from any thread.  As with write(2), no thread may store into a
 *     range while that range is being committed or rolled back.
 *   - A lock that one thread takes with fcntl(F_SETLK) on a file while another calls a function on
 *     the same file may be lost: Pawl closes a descriptor of it, and the kernel then drops such
 *     locks.  Those that the program holds already are kept.  F_OFD_SETLK and flock(2) are safe.
 *   - No function may be called from a signal handler, but for pawl_power_failing().  Nor may a
 *     handler call fork(2) that may have interrupted one: fork waits for locks, the C library's
 *     among them, which the thread itself may hold.  _Fork(3), vfork(2) and posix_spawn(3) do not.
 *   - They take less than 32 KiB of stack.
 *   - Only the process that mapped a file may commit it.  A forked child may read; its commits fail
 *     with EPERM.  What it sees is no snapshot: pages that were not stored to before the fork show
 *     what the parent commits after it.
 */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <pawl/error_codes.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_VERSION_MAJOR 0
#define PAWL_VERSION_MINOR 1
#define PAWL_VERSION_PATCH 0

#if defined(PAWL_BUILDING_SHARED)
#define PAWL_PUBLIC __attribute__((visibility("default")))
#else
#define PAWL_PUBLIC
#endif

/* MAP_SHARED_VALIDATE and one bit that no kernel knows: a program that hands MAP_ATOMIC to a kernel
 * without Pawl in between gets EOPNOTSUPP, and never loses its guarantee silently. */
#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 0x03
#endif
#ifndef MAP_ATOMIC
#define MAP_ATOMIC (MAP_SHARED_VALIDATE | 0x1000000)
#endif

/* How stores are found.  AUTO takes SCAN where the kernel has it (Linux 6.7), else FAULT.  STORE
 * sees only the stores of code that pawl-clang compiled, and what pawl_stored() is told
 * (pawl/store.h); it is never taken unasked. */
enum pawl_tracker {
  PAWL_TRACKER_AUTO = 0,
  PAWL_TRACKER_SCAN = 1,
  PAWL_TRACKER_FAULT = 2,
  PAWL_TRACKER_STORE = 3
};

/* What the file stands on.  AUTO takes MEMORY where the file can be mapped with MAP_SYNC (DAX),
 * else BLOCK.  MEMORY is also for files of tmpfs, where it protects against the death of the
 * process and not of the machine. */
enum pawl_medium { PAWL_MEDIUM_AUTO = 0, PAWL_MEDIUM_BLOCK = 1, PAWL_MEDIUM_MEMORY = 2 };

/* Whether other processes store into this one's memory (process_vm_writev, /proc/PID/mem, ptrace, a
 * child of vfork).  STORE: they may, and a commit takes what they stored.  NEVER_STORE promises
 * that none does; then commits of large mappings are faster on a machine with other busy processes.
 */
enum pawl_other_processes { PAWL_OTHER_PROCESSES_STORE = 0, PAWL_OTHER_PROCESSES_NEVER_STORE = 1 };

/* When a durable record's bytes are copied into the file: later, by a background thread, or before
 * msync returns.  Neither changes what is durable. */
enum pawl_apply { PAWL_APPLY_ASYNC = 0, PAWL_APPLY_EAGER = 1 };

/* What a commit with MS_SYNC waits for.  FLUSH: the disk.  ON_FAIL is for machines with a battery
 * (a UPS): the record is in the machine's memory, where it survives the death of the process, and
 * is flushed behind the commit; never is more outstanding than half of the hold-up time is enough
 * to flush, as fast as the disk was measured to be.  When the power fails the machine must go on
 * for so long.  Should the machine stop without warning, the last commits are lost, each whole, and
 * never one before another.  On a medium that is memory it is FLUSH. */
enum pawl_durability { PAWL_DURABILITY_FLUSH = 0, PAWL_DURABILITY_ON_FAIL = 1 };

struct pawl_options {
  /* sizeof(struct pawl_options); set by pawl_options_init. */
  size_t struct_size_bytes;
  /* To which the side file grows; it begins small.  PAWL_JOURNAL_SIZE; default 32 MiB. */
  uint64_t journal_size_bytes;
  /* enum pawl_tracker.  PAWL_TRACKER=auto|scan|fault|store. */
  int tracker;
  /* enum pawl_medium.  PAWL_MEDIUM=auto|block|memory. */
  int medium;
  /* enum pawl_apply.  PAWL_APPLY=async|eager. */
  int apply;
  /* Committed pages that may wait for async apply.  PAWL_APPLY_THRESHOLD; default 4096. */
  uint32_t apply_threshold_pages;
  /* Private memory above which a commit of the whole mapping drops clean pages, unless the program
   * has other threads.  PAWL_RESIDENT_MAX; default a quarter of RAM. */
  uint64_t resident_bytes_max;
  /* Microseconds for which a commit that waits for the device keeps an otherwise idle processor
   * awake, by a thread of the lowest priority, when there are many in close succession.
   * PAWL_IDLE_POLL_US; default 200, 0 for never. */
  uint32_t idle_poll_us;
  /* enum pawl_durability.  PAWL_DURABILITY=flush|on-fail. */
  int durability;
  /* Milliseconds for which machine and disk go on after the power has failed.  ON_FAIL takes one.
   * PAWL_HOLD_UP_MS; no default. */
  uint32_t hold_up_ms;
  /* enum pawl_other_processes, for the tracker SCAN.  PAWL_OTHER_PROCESSES=store|never-store. */
  int other_processes;
};

struct pawl_statistics {
  uint64_t commits;          /* durable or queued commits that logged something */
  uint64_t bytes_logged;     /* journal bytes written for them, padding included */
  uint64_t bytes_changed;    /* bytes of changed, or only marked, cache lines they carried */
  uint64_t dirty_pages;      /* pages that were looked at for them, in all */
  uint64_t changed_pages;    /* pages of those with a line that was logged */
  uint64_t pages_applied;    /* pages copied into the file */
  uint64_t checkpoints;      /* times the file was flushed and its records dropped */
  uint64_t stalls;           /* times a commit waited for a checkpoint, for want of journal space */
  uint64_t rollbacks;        /* MS_INVALIDATE calls */
  uint64_t pages_dropped;    /* clean pages given back to the kernel */
  uint64_t records_replayed; /* by recovery, when this mapping was made */
  uint64_t journal_size_bytes;    /* size of the side file now */
  uint64_t journal_used_bytes;    /* of which holds records that a crash would replay */
  uint64_t scans_flat;            /* scan tracker: times the whole range was scanned ... */
  uint64_t scans_located;         /* ... and times the kernel's fault log said where to look */
  uint64_t last_sequence;         /* sequence number of the last commit */
  uint64_t unmarked_bytes;        /* PAWL_VERIFY=1: changed bytes of lines that no store marked */
  uint64_t outstanding_bytes;     /* of commits that are not flushed: on-fail, and MS_ASYNC */
  uint64_t outstanding_bytes_max; /* that on-fail may leave unflushed now; 0 with flush */
  int tracker;                    /* enum pawl_tracker in use: SCAN, FAULT or STORE */
  int medium;                     /* enum pawl_medium in use: BLOCK or MEMORY */
  int apply;                      /* enum pawl_apply in use */
  int durability;                 /* enum pawl_durability in use */
  int last_error_number; /* errno of the last failed commit, apply or checkpoint; 0 for none */
  int last_error_code;   /* enum pawl_error: its code */
  char last_error[256];  /* its text */
};

/* Fills options with the defaults, then with what PAWL_* environment variables say.
 * Returns 0, or -1 with EINVAL when a variable holds what it cannot. */
PAWL_PUBLIC int pawl_options_init(struct pawl_options* options);

/* Maps length bytes of the file open (O_RDWR) as fd, from offset on, as one atomic mapping.
 * Arguments as for mmap(2); flags must contain MAP_ATOMIC, and may contain MAP_FIXED,
 * MAP_FIXED_NOREPLACE, MAP_POPULATE and MAP_NORESERVE.  If the file was left by a crash, it is
 * recovered first.  On return the file's content is durable, its journal exists beside it
 * (FILE.pawl) and the file is marked as open.  fd may be closed afterwards.
 * One file has one mapping: a second one, in any process, is refused with EBUSY. */
PAWL_PUBLIC void* pawl_mmap(void* addr, size_t length, int prot, int flags, int fd, off_t offset);

/* The same with options; NULL means pawl_options_init's. */
PAWL_PUBLIC void* pawl_mmap_with(void* addr, size_t length, int prot, int flags, int fd,
                                 off_t offset, const struct pawl_options* options);

/* Commits, queues or rolls back the pages of [addr, addr + length).
 *   MS_SYNC        on return the range and the file's size are durable, in one atomic step, and so
 *                  is every batch queued before.
 *   MS_ASYNC       defines the atomic batch and returns; nothing is durable yet.  Batches become
 *                  durable in order.  A failure is reported by the next call.
 * With the durability on-fail (above) durable means, for both, in memory that outlives the process,
 * and pawl_wait() waits for the disk. MS_INVALIDATE  rolls the range back to the committed image,
 * after waiting for queued batches; over the whole mapping it rolls the file's size back too.
 * ENOSPC leaves memory and file as they were; free some space and call again.  EIO is final: the
 * mapping takes no more commits, and mapping the file anew recovers the last durable state. */
PAWL_PUBLIC int pawl_msync(void* addr, size_t length, int flags);

/* Waits until every batch queued with MS_ASYNC on the mapping that contains addr is durable.
 * Returns 0 when all are; the failure otherwise. */
PAWL_PUBLIC int pawl_wait(void* addr);

/* The power fails (1), or is back (0), for all mappings of the process: while it fails, commits of
 * the durability on-fail wait for the disk, so that what is outstanding only becomes less.  Of all
 * functions only this one may be called from a signal handler. */
PAWL_PUBLIC void pawl_power_failing(int is_failing);

/* Unmaps the whole mapping that starts at addr and closes it: changes since the last msync are
 * discarded, committed bytes are written to the file and flushed, the mark and the side file go.
 * If that cannot be done the journal stays, the next map recovers, and -1 is returned.  In a forked
 * child it takes away the child's copy of what its parent mapped, and touches neither file nor
 * journal; in a child that shares its parent's memory (vfork): EPERM. */
PAWL_PUBLIC int pawl_munmap(void* addr, size_t length);

/* Sets the size of a mapped file.  The new size is what the process sees at once; it is durable,
 * together with the bytes, with the next commit.  On a file that is not mapped: ftruncate(2),
 * behind recovery where a crash left it; on one that is open as a heap, as a group or of
 * failure-atomic sections, or that another process has mapped: EBUSY. */
PAWL_PUBLIC int pawl_ftruncate(int fd, off_t length);

/* Fills in the counters of the mapping that contains addr. */
PAWL_PUBLIC int pawl_stats(const void* addr, struct pawl_statistics* statistics);

/* Recovers the file at path after a crash, without mapping it: replays its journal, flushes it and
 * removes mark and journal.  Returns the number of records replayed (0: nothing to do). */
PAWL_PUBLIC long pawl_recover(const char* path);

/* Files that move together.  A group has a file of its own, which stays empty and names it; the
 * group's journal stands beside it.  pawl_group_msync commits what changed in all mappings of the
 * group by one record: after a crash all files have it, or none.
 *
 * After a crash pawl_group_open recovers all files of the group.  Each can also be recovered, or
 * mapped, by itself; it then holds the same last commit. */
struct pawl_group;

/* Opens the group that the file at path names, and makes that file where there is none.  options as
 * for pawl_mmap_with: for the group's journal, and for every mapping in it.  NULL on failure.
 * EBUSY: another process has the group.  EINVAL: the file is not empty.  ENODATA: a file of the
 * group, which a crash left open, is missing. */
PAWL_PUBLIC struct pawl_group* pawl_group_open(const char* path,
                                               const struct pawl_options* options);

/* As pawl_mmap, of a file that is of the group until it is unmapped with pawl_munmap.  All other
 * calls take its mapping as any: pawl_msync commits that range alone, by a record of its own.  The
 * files of a group, at most 16, are on disks, and their file systems have user attributes. */
PAWL_PUBLIC void* pawl_group_mmap(struct pawl_group* group, void* addr, size_t length, int prot,
                                  int flags, int fd, off_t offset);

/* As pawl_msync, of every mapping of the group, whole, with the sizes of their files: MS_SYNC,
 * MS_ASYNC or MS_INVALIDATE.  No thread may store into any of them meanwhile. */
PAWL_PUBLIC int pawl_group_msync(struct pawl_group* group, int flags);

/* As pawl_wait, of the batches of all its mappings. */
PAWL_PUBLIC int pawl_group_wait(struct pawl_group* group);

/* Closes a group without mappings (EBUSY: there are some), and frees it, whatever else it returns.
 * In a forked child: EPERM, and nothing is done. */
PAWL_PUBLIC int pawl_group_close(struct pawl_group* group);

/* A flag of pawl_snapshot: what stands at `to` may be replaced. */
#define PAWL_SNAPSHOT_REPLACE 1

/* Makes `to` a copy of the file at path, as its last durable commit left it: every commit that was
 * acknowledged before the call is in it, perhaps later ones, each whole.  Whoever has the file
 * mapped, in this process or another, goes on committing meanwhile; what a crash left is copied as
 * recovery would leave it.  The file itself is not changed.  `to` is a plain file, without mark and
 * journal, and appears whole and durable or not at all.  flags is 0 or PAWL_SNAPSHOT_REPLACE.
 * EEXIST: there is one of that name, and it may not be replaced.  EBUSY: writers came and went, or
 * outran the copy, too often; try again.  A file of failure-atomic sections is copied while it is
 * closed: EBUSY where it is open, or where a crash left sections in it to finish. */
PAWL_PUBLIC int pawl_snapshot(const char* path, const char* to, int flags);

/* What went wrong in the last failed call of this thread, and what to do about it.  Never NULL;
 * valid until the thread's next call. */
PAWL_PUBLIC const char* pawl_last_error(void);

/* Which condition it was: an enum pawl_error (pawl/error_codes.h).  Texts may change, codes may
 * not. Like errno and the text it is that of the last failed call of this thread: a call that
 * succeeds leaves all three as they are.  PAWL_ERROR_NONE before any call of this thread has
 * failed. */
PAWL_PUBLIC int pawl_last_error_code(void);

#ifdef __cplusplus
}
#endif
#endif
