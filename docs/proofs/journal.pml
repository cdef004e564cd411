/* Which state recovery finds (src/journal/, docs/journal-format.md).
 *
 * A writer appends records to a ring, applies them to the base, flushes that, moves the tail in a header
 * and uses the space again.  The ring begins small, and grows; a record larger than the ring stands alone, and past its end.  Each write and flush may do its work wholly, in part or not, and then
 * report an error.  The process dies, or the power fails, at any moment, also in recovery, and what was
 * not flushed is there, is torn or is not there, each part for itself.
 *
 * Claim: recovery takes no journal for one that was cut, and finds the state of the last acknowledged commit, or that of a commit behind it that
 * was refused as final or was under way (of those that share a flush, each with all before it); never an
 * older one, nor one that never was.
 *
 * The state is two cells; commit w writes w into the cell w % 2.  So a record that is left out, or
 * replayed though it is stale, shows.  A record takes one place or two, and one larger than the ring three, of which its
 * start has the first and its rest the last; its checksum finds a part that is missing.
 *
 * Left out: the file's size (a cell like any other), snapshots that hold records, and the evidence by
 * which damage is told from a torn end.
 *
 * The rules, each of which may be broken:
 *   BROKEN_WRITE_BELIEVED_UNDONE: a write of a record that failed is taken for not done
 *   BROKEN_CANCEL_AFTER_WRITE: a place is given back although the start of its record was written
 *   BROKEN_BASE_FLUSH_RETRIED: a flush of the base that failed is tried again and believed
 *   BROKEN_RELEASE_UNFLUSHED: the tail moves over records that are applied and not flushed
 *   BROKEN_ONE_HEADER: the header is overwritten in place
 *   BROKEN_HEADER_BELIEVED: space is used again although the header that frees it failed
 *   BROKEN_GROWTH_UNFLUSHED: a header tells of a larger ring before the file has its size durably
 *   BROKEN_GROWTH_OVER_RECORD: the ring grows over a record past its end that is not counted yet
 *   BROKEN_NO_EPOCH: a record of an earlier life is believed
 *   BROKEN_RECOVERY_UNFLUSHED: recovery empties the journal before it flushes the base
 *   BROKEN_JOURNAL_UNFLUSHED: recovery applies records that it has not flushed
 *
 * pan options: -m200000
 * gcc options: -DCOLLAPSE -DSAFETY
 */

#define PLACES 3
#define PLACES_FIRST 2  /* of a ring before it grows */
#define RECORDS_MAX 3  /* bounds of the search */
#define HEADERS_MAX 4
#define CRASHES_MAX 2
#define NONE 255       /* nothing is on its way */

/* The disk: what is durable, and what is on its way and seen by whoever reads. */
byte place[PLACES];          /* 2w: the start of record w; 2w + 1: its rest; 0: neither */
byte place_pending[PLACES] = NONE;
byte file_places = PLACES_FIRST;  /* up to the end of the file */
byte file_places_pending = NONE;
byte slot[2];                /* a header's number, or 0 */
byte slot_pending[2] = NONE;
byte base[2];
byte base_pending[2] = NONE;
bit base_lost[2];            /* a flush failed: no later one takes it */

/* What was written into them: by number, as bytes never change. */
byte records;
byte record_epoch[RECORDS_MAX + 1];
byte record_sequence[RECORDS_MAX + 1];
byte record_places[RECORDS_MAX + 1];
byte headers;
byte header_generation[HEADERS_MAX + 1];
byte header_epoch[HEADERS_MAX + 1];
byte header_tail[HEADERS_MAX + 1];
byte header_sequence[HEADERS_MAX + 1];
byte header_places[HEADERS_MAX + 1];  /* that the journal has at least */

/* The judge. */
byte acknowledged[2];
byte in_doubt;  /* the commit that may be found as well; 0: none */
byte in_doubt_next;  /* and with it the one behind it; 0: none */
byte crashes;

/* The writer. */
byte epoch;
byte generation;
byte next;               /* sequence number */
byte head;
byte ring = PLACES_FIRST;
byte written = PLACES_FIRST;  /* places that the ring need not fill with zeros before it takes them */
byte held[PLACES];       /* the sequence number of the record that has the place; 0: free */
byte starts[RECORDS_MAX + 2];  /* where the record with this sequence number starts */
byte applied;            /* sequence numbers up to here are in the base, */
byte flushed;            /* and durable there */
bit is_final;
bit base_is_final;

#define SEEN(pending, durable) (pending == NONE -> durable : pending)

inline land(pending, durable) {
  if
  :: pending != NONE -> durable = pending; pending = NONE
  :: else
  fi
}

inline flush_journal() {
  atomic {
    land(place_pending[0], place[0]);
    land(place_pending[1], place[1]);
    land(place_pending[2], place[2]);
    land(file_places_pending, file_places);
    land(slot_pending[0], slot[0]);
    land(slot_pending[1], slot[1])
  }
}

inline land_base(c) {
  if
  :: base_pending[c] != NONE && !base_lost[c] -> base[c] = base_pending[c]; base_pending[c] = NONE
  :: else
  fi
}

inline flush_base() {
  atomic { land_base(0); land_base(1) }
}

/* The flush answers an error: its bytes are durable, or the kernel takes them for written. */
inline fail_flush_of_base() {
  if
  :: true -> flush_base()
  :: atomic {
       base_lost[0] = base_pending[0] != NONE;
       base_lost[1] = base_pending[1] != NONE
     }
  fi
}

inline write_base(c, value) {
  atomic { base_pending[c] = value; base_lost[c] = 0 }
}

/* The power fails: of what is on its way each part is there, torn, or not there. */
inline lose(pending, durable) {
  if
  :: pending == NONE
  :: pending != NONE -> durable = pending
  :: pending != NONE -> durable = 0
  :: pending != NONE
  fi;
  pending = NONE
}

inline lose_base(c) {
  if
  :: base_pending[c] == NONE
  :: base_pending[c] != NONE -> base[c] = base_pending[c]
  :: base_pending[c] != NONE
  fi;
  base_pending[c] = NONE;
  base_lost[c] = 0
}

inline may_crash() {
  if
  :: crashes < CRASHES_MAX -> goto crash
  :: skip
  fi
}

/* Leaves w: the record with this sequence number at this place, whole; or 0. */
inline find(at, sequence) {
  atomic {
    w = 0;
    if
    :: at < SEEN(file_places_pending, file_places) -> w = SEEN(place_pending[at], place[at])
    :: else
    fi;
    if
    :: w % 2 == 1 -> w = 0
    :: else -> w = w / 2
    fi;
    if
    :: w != 0 && record_places[w] > 1 ->
       if
       :: at + record_places[w] - 1 < SEEN(file_places_pending, file_places) &&
          SEEN(place_pending[at + record_places[w] - 1], place[at + record_places[w] - 1]) == 2 * w + 1
       :: else -> w = 0
       fi
    :: else
    fi;
    if
    :: w != 0 && record_sequence[w] != sequence -> w = 0
#ifndef BROKEN_NO_EPOCH
    :: w != 0 && record_epoch[w] != epoch -> w = 0
#endif
    :: else
    fi
  }
}

/* A header, durable unless it fails; leaves has_failed. */
inline write_header(tail, sequence, places) {
  atomic {
    headers++;
    generation++;
    header_generation[headers] = generation;
    header_epoch[headers] = epoch;
    header_tail[headers] = tail;
    header_sequence[headers] = sequence;
    header_places[headers] = places;
#ifdef BROKEN_ONE_HEADER
    at = 0;
#else
    at = generation % 2;
#endif
    has_failed = 0;
    if
    :: slot_pending[at] = headers
    :: slot_pending[at] = headers; has_failed = 1  /* done, wholly or torn: a crash decides */
    :: has_failed = 1                              /* not done */
    fi;
    at = 0
  };
  may_crash();
  if
  :: has_failed
  :: !has_failed -> flush_journal()
  :: !has_failed -> has_failed = 1  /* the flush fails, and has done its work or not: as above */
  fi
}

/* The new record: its number, its start, its rest. */
inline begin_record(sequence_of_it) {
  atomic {
    records++;
    record_epoch[records] = epoch;
    record_sequence[records] = sequence_of_it;
    record_places[records] = size
  }
}
inline put_start() { place_pending[at] = 2 * records }
inline put_rest() {
  if
  :: record_places[records] > 1 -> place_pending[at + record_places[records] - 1] = 2 * records + 1
  :: else
  fi
}

/* It is durable: acknowledged, and its place is taken. */
inline take(record, places) {
  acknowledged[record % 2] = record;
  held[at] = next;
  if
  :: places > 1 -> held[at + 1] = next; held[at + places - 1] = next
  :: else
  fi;
  starts[next] = at;
  at = at + places;
  head = at;
  next++
}

active proctype writer() {
  byte w, at, size, first, sequence, count;
  byte chain[RECORDS_MAX + 1];
  bit has_failed;

  /* A file that was just opened. */
  atomic {
    epoch = 1;
    generation = 1;
    next = 1;
    headers = 1;
    header_generation[1] = 1;
    header_epoch[1] = 1;
    header_sequence[1] = 1;
    header_places[1] = PLACES_FIRST;
    slot[1] = 1
  };
  goto open;

crash:
  crashes++;
  if
  :: skip  /* the process dies, and the kernel goes on */
  :: atomic {
       lose(place_pending[0], place[0]);
       lose(place_pending[1], place[1]);
       lose(place_pending[2], place[2]);
       if
       :: file_places_pending != NONE -> file_places = file_places_pending
       :: skip
       fi;
       file_places_pending = NONE;
       lose(slot_pending[0], slot[0]);
       lose(slot_pending[1], slot[1]);
       lose_base(0);
       lose_base(1)
     }
  fi;

  /* Recovery: the newer header, and what follows its tail. */
  atomic {
    w = SEEN(slot_pending[0], slot[0]);
    at = SEEN(slot_pending[1], slot[1]);
    if
    :: w == 0 || (at != 0 && header_generation[at] > header_generation[w]) -> w = at
    :: else
    fi;
    assert(w != 0);
    assert(header_places[w] <= SEEN(file_places_pending, file_places));
    epoch = header_epoch[w];
    generation = header_generation[w];
    at = header_tail[w];
    sequence = header_sequence[w];
    count = 0
  };
  do
  :: true ->
     find(at, sequence);
     if
     :: w == 0 && at != 0 -> at = 0; find(at, sequence)  /* the ring goes round */
     :: else
     fi;
     if
     :: w == 0 -> break
     :: else ->
        atomic {
          chain[count] = w;
          count++;
          at = at + record_places[w];
          sequence++
        }
     fi
  od;

  /* The judge looks at what is found. */
  atomic {
    w = SEEN(base_pending[0], base[0]);
    at = SEEN(base_pending[1], base[1]);
    first = 0;
    do
    :: first < count ->
       if
       :: chain[first] % 2 == 0 -> w = chain[first]
       :: else -> at = chain[first]
       fi;
       first++
    :: else -> break
    od;
    first = 0;
    assert((w == acknowledged[0] && at == acknowledged[1]) ||
           (in_doubt != 0 && in_doubt % 2 == 0 && w == in_doubt && at == acknowledged[1]) ||
           (in_doubt % 2 == 1 && w == acknowledged[0] && at == in_doubt) ||
           (in_doubt_next != 0 && w + at == in_doubt + in_doubt_next &&
            (w == in_doubt || at == in_doubt)));
    w = 0;
    at = 0
  };

#ifndef BROKEN_JOURNAL_UNFLUSHED
  may_crash();
  flush_journal();
#endif
  do
  :: first < count ->
     may_crash();
     write_base(chain[first] % 2, chain[first]);
     first++
  :: else -> break
  od;
  first = 0;
  may_crash();
#ifndef BROKEN_RECOVERY_UNFLUSHED
  if
  :: true -> flush_base()
  :: crashes < CRASHES_MAX -> fail_flush_of_base(); goto crash  /* the open fails; the next one */
  fi;
  may_crash();
#endif
  /* A new life: its first header makes the old records stale. */
  if
  :: headers == HEADERS_MAX -> goto done
  :: else
  fi;
  epoch = headers + 1;
  write_header(0, sequence, PLACES_FIRST);
  if
  :: has_failed && crashes < CRASHES_MAX -> goto crash
  :: has_failed && crashes == CRASHES_MAX -> goto done
  :: else
  fi;
  atomic {
    acknowledged[0] = SEEN(base_pending[0], base[0]);
    acknowledged[1] = SEEN(base_pending[1], base[1]);
    in_doubt = 0;
    in_doubt_next = 0;
    next = sequence;
    head = 0;
    ring = PLACES_FIRST;
    written = PLACES_FIRST;
    file_places_pending = PLACES_FIRST;  /* cut behind the header */
    held[0] = 0;
    held[1] = 0;
    held[2] = 0;
    applied = next - 1;
    flushed = next - 1;
    is_final = 0;
    base_is_final = 0;
    count = 0;
    sequence = 0;
    chain[0] = 0;
    chain[1] = 0;
    chain[2] = 0
  };

open:
  do
  :: crashes < CRASHES_MAX -> goto crash

  /* A commit. */
  :: !is_final && records < RECORDS_MAX ->
     if
     :: size = 1
     :: size = 2
     fi;
     /* A place: behind the last record, else at the front. */
     atomic {
       at = NONE;
       if
       :: head + size <= ring && !held[head] && (size == 1 || !held[head + 1]) -> at = head
       :: else ->
          if
          :: size <= head && !held[0] && (size == 1 || !held[1]) -> at = 0
          :: else
          fi
       fi
     };
     if
     :: at == NONE -> at = 0; goto open  /* no room before a checkpoint */
     :: else
     fi;
     if
     :: size == 2 ->
        /* Of a large record the rest is written first; then there is no space, and the place is given
         * back. */
#ifdef BROKEN_CANCEL_AFTER_WRITE
        begin_record(next);
        atomic { put_start(); put_rest() };
#else
        place_pending[at + 1] = 0;
#endif
        at = 0;
        goto open
     :: skip
     fi;
     begin_record(next);
     in_doubt = records;
     has_failed = 0;
     if
     :: true -> atomic { put_start(); put_rest() }
     :: true -> put_start(); has_failed = 1
     :: true -> put_rest(); has_failed = 1
     :: true -> atomic { put_start(); put_rest(); has_failed = 1 }
     :: has_failed = 1
     fi;
     /* Another one may share the flush. */
     if
     :: size == 1 && !has_failed && records < RECORDS_MAX && at + 1 < ring && !held[at + 1] ->
        begin_record(next + 1);
        in_doubt_next = records;
        at++;
        if
        :: true -> put_start()
        :: true -> put_start(); has_failed = 1
        :: has_failed = 1
        fi;
        at--
     :: skip
     fi;
     may_crash();
     if
     :: true -> flush_journal()  /* what failed before may be durable, too */
     :: has_failed = 1
     fi;
     if
     :: has_failed ->
#ifdef BROKEN_WRITE_BELIEVED_UNDONE
        skip
#else
        is_final = 1
#endif
     :: else ->
        atomic {
          take(in_doubt, size);
          if
          :: in_doubt_next != 0 -> take(in_doubt_next, 1)
          :: else
          fi;
          in_doubt = 0;
          in_doubt_next = 0
        }
     fi;
     at = 0;
     size = 0;
     has_failed = 0

  /* A commit larger than the ring: first a header by which the reader looks for it at the front. */
  :: !is_final && ring < PLACES && records < RECORDS_MAX && headers < HEADERS_MAX && !held[0] && !held[1] ->
     write_header(0, next, ring);
     if
     :: has_failed -> is_final = 1; has_failed = 0; goto open
     :: else
     fi;
     size = PLACES;
     file_places_pending = PLACES;
     begin_record(next);
     in_doubt = records;
     if
     :: true -> atomic { put_start(); put_rest() }
     :: true -> put_rest(); has_failed = 1
     fi;
#ifdef BROKEN_GROWTH_OVER_RECORD
     place_pending[PLACES - 1] = 0;
#endif
     may_crash();
     if
     :: true -> flush_journal()
     :: has_failed = 1
     fi;
     if
     :: has_failed -> is_final = 1
     :: else -> atomic { take(in_doubt, PLACES); written = PLACES; in_doubt = 0 }
     fi;
     at = 0;
     size = 0;
     has_failed = 0

  /* Apply, cell by cell. */
  :: applied < next - 1 ->
     write_base(0, acknowledged[0]);
     may_crash();
     write_base(1, acknowledged[1]);
     applied = next - 1

  /* A checkpoint: first the base, */
  :: flushed < applied && !base_is_final ->
     if
     :: true -> flush_base(); flushed = applied
     :: true -> fail_flush_of_base();
#ifdef BROKEN_BASE_FLUSH_RETRIED
        flush_base();
        flushed = applied
#else
        base_is_final = 1
#endif
     fi
#ifdef BROKEN_RELEASE_UNFLUSHED
  :: flushed < applied -> flushed = applied
#endif

  /* then the tail, then the space. */
  :: !is_final && headers < HEADERS_MAX && (held[0] != 0 && held[0] <= flushed ||
       held[1] != 0 && held[1] <= flushed || held[2] != 0 && held[2] <= flushed) ->
     if
     :: flushed + 1 < next -> first = starts[flushed + 1]
     :: else -> first = head
     fi;
     write_header(first, flushed + 1, ring);
     first = 0;
#ifdef BROKEN_HEADER_BELIEVED
     has_failed = 0;
#endif
     if
     :: has_failed -> is_final = 1
     :: else ->
        atomic {
          if :: held[0] <= flushed -> held[0] = 0 :: else fi;
          if :: held[1] <= flushed -> held[1] = 0 :: else fi;
          if :: held[2] <= flushed -> held[2] = 0 :: else fi
        }
     fi;
     has_failed = 0

  /* The ring grows: first the file, then the header, then there is space. */
  :: !is_final && ring < PLACES && headers < HEADERS_MAX ->
     atomic {
       file_places_pending = PLACES;
       if
       :: written < PLACES -> place_pending[PLACES - 1] = 0
       :: else
       fi
     };
#ifndef BROKEN_GROWTH_UNFLUSHED
     may_crash();
     flush_journal();
#endif
     write_header(header_tail[headers - 1], header_sequence[headers - 1], PLACES);
     if
     :: has_failed -> is_final = 1
     :: else -> ring = PLACES
     fi;
     has_failed = 0

  :: else -> break
  od;

done:
  skip
}
