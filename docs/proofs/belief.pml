/* When a commit may believe the log of page faults (src/track/fault_log.h).
 *
 * A fault opens its page (the page table shows it as written), is then counted, and is then either
 * sampled into the log or never (a store by the kernel or by another process, a full ring).  That is
 * the order of Linux since 6.5 (mm_account_fault); the tracker needs 6.7.  So another thread may store
 * to a page before the fault that opened it is counted.  Who opened it is in the midst of a store to
 * the page (see the claim), or in a system call that asks for a page to be writable and stores nothing:
 * futex, mlock.  The kernel holds the memory map for reading from before such a fault opens its page
 * until it is counted, and a commit waits for that by a call that takes the map for writing.
 *
 * A commit that believes the log looks at the sampled pages only; one that does not looks at all pages.
 *
 * Claim: every store that is over when a commit begins is taken by that commit, in every schedule,
 * while threads are born, store and end.  A store that runs beside the commit of its own page is the
 * program's fault and not judged; the next commit must take it.  When the watch of the pages has
 * ended, for the program closed its descriptor, no commit claims anything any more.
 *
 * Left out, as it adds nothing to the argument: several rings and the order in them (samples may be
 * read in any order), several mappings (each asks for itself), and that more than one thread makes such
 * system calls.
 *
 * The rules, each of which may be broken:
 *   BROKEN_BASELINE_IN_FLIGHT: the bound waits for no thread
 *   BROKEN_THREAD_NOT_LISTED: the bound does not wait for a thread that the listing missed
 *   BROKEN_SAMPLES_BEFORE_COUNT: the bound's samples are read before its count
 *   BROKEN_COUNT_BEFORE_SAMPLES: a commit reads the count before the samples
 *   BROKEN_BOUND_AFTER_WALK: the bound is taken after the walk
 *   BROKEN_MAP_NOT_WAITED_FOR: a commit does not wait for faults of system calls that store nothing
 *   BROKEN_WATCH_NOT_ASKED: a commit believes the log without asking whether pages still fault
 *
 * pan options: -m200000
 */

#define PAGES 2
#define FAULTS_MAX 4  /* bounds the search; the shortest counterexample of a broken rule needs 3 */
#define UNKNOWN -100

/* The kernel. */
byte faults;          /* that ever began */
short counted;        /* faults counted, of all threads */
bit attached;         /* samples go to the ring */
byte in_ring[PAGES];  /* samples that nobody has read */
bit written[PAGES];   /* the page table: opened since it was last armed */
bit watched = 1;      /* stores to pages that are not opened fault */

/* The threads that store. */
bit alive[2];
bit in_flight[2];     /* has counted a fault and may yet sample it */
bit holds_map;        /* a system call opened a page, and holds the memory map until it counts */
byte storing[PAGES];  /* threads between the begin of a store and its end */
bit stored[PAGES];    /* a store is over, and no commit has taken it */

/* The thread that commits. */
short samples;          /* read so far */
bit sampled[PAGES];     /* it has read a sample of this page, and not looked at it since */
short bound = UNKNOWN;  /* at least so many counted faults will never be sampled: proven */
bit knows;              /* the pages have been walked since the attach */
bit owed[PAGES];        /* what the commit in hand must take */

proctype storer(byte id) {
  byte page;
end:
  do
  :: !alive[id] -> alive[id] = 1
  :: alive[id] -> alive[id] = 0
  :: atomic { id == 0 && alive[id] && watched -> watched = 0; written[0] = 1; written[1] = 1 }
  :: id == 1 && alive[id] ->  /* A system call opens a page and stores nothing. */
     if :: page = 0 :: page = 1 fi;
     if
     :: atomic { !written[page] && faults < FAULTS_MAX ->
                 faults++; written[page] = 1; page = 0; holds_map = 1 };
        atomic { counted++; holds_map = 0 }
     :: atomic { written[page] || faults == FAULTS_MAX -> page = 0 }
     fi
  :: alive[id] ->
     if :: page = 0 :: page = 1 fi;
     atomic { storing[page]++; owed[page] = 0 };
     do
     :: atomic { written[page] -> stored[page] = 1; storing[page]--; break }
     :: atomic { !written[page] && faults < FAULTS_MAX -> faults++; written[page] = 1 };
        atomic { counted++; in_flight[id] = 1 };
        if
        :: atomic { in_ring[page] = in_ring[page] + attached; in_flight[id] = 0 }
        :: in_flight[id] = 0  /* never sampled */
        fi  /* The store is tried again: a commit may have armed the page. */
     :: atomic { !written[page] && faults == FAULTS_MAX -> storing[page]--; break }
     od;
     page = 0
  od
}

inline drain() {
  d_step {
    samples = samples + in_ring[0] + in_ring[1];
    sampled[0] = sampled[0] || in_ring[0] > 0;
    sampled[1] = sampled[1] || in_ring[1] > 0;
    in_ring[0] = 0;
    in_ring[1] = 0
  }
}

/* Until the thread is seen asleep or ended: at that moment it is not in flight. */
inline see_asleep(id) { !in_flight[id] }

/* Faults counted by now, less what is sampled once every thread has been seen asleep since: none of
 * them can be sampled later, so at least the difference will never be. */
inline prove_bound() {
  if
  :: bound = UNKNOWN  /* some thread is never seen asleep */
  ::
#ifdef BROKEN_SAMPLES_BEFORE_COUNT
     drain();
#endif
     count = counted;
#ifndef BROKEN_BASELINE_IN_FLIGHT
     see_asleep(0);
#ifndef BROKEN_THREAD_NOT_LISTED
     see_asleep(1);
#endif
#endif
#ifndef BROKEN_SAMPLES_BEFORE_COUNT
     drain();
#endif
     bound = count - samples
  fi;
  count = 0
}

/* Takes a page's stores, if the page table shows any, and arms it again.  The kernel refuses that
 * for pages that are not watched, and the commit fails. */
inline look(page) {
  atomic {
    sampled[page] = 0;
    if
    :: !watched -> owed[0] = 0; owed[1] = 0
    :: watched && written[page] -> written[page] = 0; stored[page] = 0; owed[page] = 0
    :: else
    fi
  }
}

active proctype committer() {
  short count;
  run storer(0);
  run storer(1);

  attached = 1;  /* perhaps in the midst of another thread's fault */
  prove_bound();

end:
  do
  :: /* A commit. */
     d_step { owed[0] = stored[0] && storing[0] == 0; owed[1] = stored[1] && storing[1] == 0 };
#ifndef BROKEN_MAP_NOT_WAITED_FOR
     !holds_map;
#endif
#ifdef BROKEN_COUNT_BEFORE_SAMPLES
     count = counted;
     drain();
#else
     drain();
     count = counted;
#endif
     if
     :: knows && bound != UNKNOWN && count - samples == bound ->
        count = 0;
#ifndef BROKEN_WATCH_NOT_ASKED
        if :: !watched -> break :: else fi;
#endif
        if :: sampled[0] -> look(0) :: else fi;
        if :: sampled[1] -> look(1) :: else fi
     :: else ->
#ifndef BROKEN_BOUND_AFTER_WALK
        if :: bound == UNKNOWN || count - samples != bound -> prove_bound() :: else fi;
#endif
        count = 0;
        knows = 1;
        look(0);
        look(1);
#ifdef BROKEN_BOUND_AFTER_WALK
        prove_bound();
#endif
     fi;
     atomic { assert(!owed[0] && !owed[1]) }
  od
}
