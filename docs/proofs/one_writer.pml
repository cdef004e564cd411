/* One writer to a file, whatever it is called (src/medium/named_medium.h, src/mapping/recovery.h).
 *
 * One file with two names: two hard links, or two names one after the other.  The journal of an opener
 * stands beside the name that it used; a person may rename one of them at any moment.  Two processes open
 * the file by either name, recover it, commit, apply, close, give up a journal that they do not find,
 * and die at any step.  The power may fail once: then both die, and a mark that was not flushed may be lost.
 * The person may take the mark away once, while the file has a writer.
 *
 * An opener locks the journal of its name, or a new one that has no name yet; puts its notice where all
 * can ask for it; and reads the mark.  If there is one, it looks for the other's notice.  Once it
 * has set a mark where there was none it puts a second notice, that of a writer, and looks for the other's:
 * that one's mark was taken away.
 *
 * A writer whose file is to be renamed steps aside, once: it brings all into the file, clears the mark,
 * takes its journal's name away, and comes back by either name.  Both of its notices stay.  Before the mark goes it sets
 * a sign, another attribute of the file, which says that its notice is to be asked for; it leaves that when it is back, and
 * takes it away at its end, behind the mark.
 *
 * All others ask before they act, at any moment and by any name: who writes to the file, cuts it, replaces or
 * removes it asks whether it has a writer: it reads the mark and then the sign, and asks for the writer's notice if there is
 * one of them; who reads it and finds one makes a copy, of the file and the journal that an
 * open mark names, or of the file alone.
 *
 * Claim: two processes never write the file at a time; who opens it finds every commit that was
 * acknowledged; and nobody is refused for want of a journal that was not hidden by a person, nor for one
 * that was not moved by a person.  Nobody else is answered that the file has no writer if it had one all the time
 * from the first look to the last, and a copy has every commit that was acknowledged.  (The last five only as long as no
 * mark was taken away.)
 *
 * Left out: what a lock is (one step, and its holder's death undoes it, as it does the notice); torn
 * writes of a journal, which are another proof's; copies, which are other files; groups; what a person
 * does behind a writer that has stepped aside; and the time between the answer and what is done then.
 *
 * The rules, each of which may be broken:
 *   BROKEN_MARK_OVERWRITTEN: the mark is set although there is one by now
 *   BROKEN_FORMAT_BEFORE_MARK: a journal that was replayed is formatted before the mark is changed
 *   BROKEN_MARK_NOT_FLUSHED: it is formatted before the changed mark is durable
 *   BROKEN_GIVE_UP_WITHOUT_ASKING: a journal is given up without a look for a writer's notice
 *   BROKEN_MARK_READ_ONCE: a mark is replaced that may have been set behind the look for its setter
 *   BROKEN_ONE_NOTICE: who sets a mark where there was none does not look for a writer without one
 *   BROKEN_JOURNAL_REMOVED_FIRST: a close removes the journal before it clears the mark
 *   BROKEN_EARLIER_JOURNAL_KEPT: the journal of a dead opening stays beside the other name
 *   BROKEN_EARLIER_JOURNAL_BEFORE_FLUSH: it is removed before the mark that names it is durable
 *   BROKEN_NOTICES_GIVEN_BACK: a writer that steps aside has no notice until it comes back
 *   BROKEN_NO_MARK_NO_WRITER: a file without a mark is taken for one that has no writer
 *   BROKEN_SIGN_BEHIND_MARK: who steps aside sets the sign after the mark was removed
 *   BROKEN_SIGN_TAKEN_BACK: who comes back takes the sign away
 *   BROKEN_SIGN_TAKEN_LATE: a close takes the sign away when its notices are gone
 *   BROKEN_SIGN_READ_FIRST: who asks reads the sign before the mark
 *   BROKEN_COPY_BY_NAME: who reads the file looks for its journal beside the name that he uses
 *
 * pan options: -m100000
 * gcc options: -DCOLLAPSE -DVECTORSZ=2048
 */

#ifndef LIVES
#define LIVES 3        /* openings by both processes together; the longest counterexample takes 3 */
#endif
#define NAMES 2
#define JOURNALS 3
#define NOBODY 2
#define NOWHERE 3      /* a journal's place, if it is not 0 or 1: there is none */
#define UNNAMED 2      /* it has no name yet */
#define NO_JOURNAL 3

mtype = { none, opening, open };

typedef Mark { mtype state; byte id; byte journal; byte name };
Mark mark;     /* as every process sees it */
Mark durable;  /* as the disk has it */

byte place[JOURNALS];    /* NOWHERE, UNNAMED, or the name it stands beside */
byte id[JOURNALS];
byte holder[JOURNALS];   /* of its lock */
bit records[JOURNALS];   /* it has some to replay */
bit moved[JOURNALS];     /* a person renamed it, and no mark names its new place */
bit complete[JOURNALS];  /* with them the file has all that was acknowledged */

bit file_has_all;        /* of what was acknowledged, without any journal */
bit notice[2];
bit writer_notice[2];
bit sign;
bit asks;                /* one of the others has read the first, and the file has had a writer since */
bit taken_away;          /* the mark, from a file that had a writer */
bit stepped_aside;
bit writes[2];
bit dark;                /* the power has failed */
byte running;
byte lives;

#define other (1 - me)
#define same_mark(a, b) (a.state == b.state && a.id == b.id && a.journal == b.journal && a.name == b.name)
#define has_the_journal(j) (place[j] < NAMES && id[j] == mark.id)
/* It has older records than what is committed now, and a person did not hide it. */
#define is_stale(j) (j != journal && place[j] < NAMES && records[j] && !moved[j] && !taken_away)
#define journal_exists (has_the_journal(0) || has_the_journal(1) || has_the_journal(2))

inline set_mark(to_state, to_id, to_journal, to_name) {
  mark.state = to_state; mark.id = to_id; mark.journal = to_journal; mark.name = to_name
}
inline flush_mark() {
  durable.state = mark.state; durable.id = mark.id; durable.journal = mark.journal;
  durable.name = mark.name
}
inline forget(j) {
  place[j] = NOWHERE; id[j] = 0; records[j] = 0; complete[j] = 0; holder[j] = NOBODY; moved[j] = 0
}
#ifdef BROKEN_GIVE_UP_WITHOUT_ASKING
#define must_look (mark.state != none && !(is_new && mark.state == open))
#else
#define must_look (mark.state != none)
#endif

/* A step may be the last. */
#define STEP atomic { if :: dark -> goto died :: !dark :: goto died fi;
#define DONE }

proctype program(bit me) {
  byte name, journal, fresh, recovered, seen;
  mtype seen_state;
  bit is_new;
  atomic { journal = NO_JOURNAL; seen_state = none };
end:
  atomic {
    !dark && lives < LIVES ->
    lives++;
    fresh = lives;  /* an id that nobody ever had: they are drawn at random */
    running++;
    if :: name = 0 :: name = 1 fi
  };

  /* acquire_journal(): the lock ... */
  STEP
    if
    :: place[0] == name -> journal = 0
    :: place[1] == name -> journal = 1
    :: place[2] == name -> journal = 2
    :: place[0] != name && place[1] != name && place[2] != name ->
       is_new = 1;
       if
       :: place[0] == NOWHERE -> journal = 0
       :: place[0] != NOWHERE && place[1] == NOWHERE -> journal = 1
       :: place[0] != NOWHERE && place[1] != NOWHERE && place[2] == NOWHERE -> journal = 2
       :: else -> goto died  /* the bound of the model */
       fi;
       place[journal] = UNNAMED
    fi;
    if
    :: holder[journal] != NOBODY -> journal = NO_JOURNAL; goto died  /* EBUSY */
    :: else -> holder[journal] = me
    fi
  DONE
  /* ... the notice, and the look for another's, if there is a mark. */
  STEP notice[me] = 1 DONE
  STEP if :: must_look && notice[other] -> goto died :: else fi DONE  /* EBUSY */

  /* recovered_journal(): does the journal belong to the file? */
  STEP
    if
    :: mark.state == open && is_new ->
       assert(journal_exists || taken_away);
       if :: goto died :: seen = mark.id; goto give_up fi
    :: mark.state == open && !is_new && id[journal] != mark.id ->
       assert(journal_exists || taken_away);
       goto died  /* EBADMSG */
    :: mark.state == open && !is_new && id[journal] == mark.id -> recovered = mark.id
    :: mark.state == opening && !is_new && mark.journal == journal -> recovered = id[journal]
    :: (mark.state == none || (mark.state == opening && mark.journal != journal)) && !is_new &&
       records[journal] ->
       assert(moved[journal] || taken_away);
       goto died  /* EBADMSG */
    :: else
    fi;
    if
    :: recovered != 0 && records[journal] -> file_has_all = complete[journal]
    :: else
    fi
  DONE

#ifndef BROKEN_EARLIER_JOURNAL_KEPT
  /* retire_earlier_journal(): that of a dead opening by the other name */
  STEP
    if
    :: mark.state == opening && mark.journal != journal && place[mark.journal] < NAMES &&
       place[mark.journal] == mark.name ->
       if
       :: holder[mark.journal] != NOBODY -> goto died  /* EBUSY */
       :: else -> holder[mark.journal] = me; seen = mark.journal
       fi
    :: else -> goto retired
    fi
  DONE
#ifndef BROKEN_EARLIER_JOURNAL_BEFORE_FLUSH
  STEP flush_mark() DONE
#endif
  STEP forget(seen) DONE
retired:
#endif

#ifdef BROKEN_FORMAT_BEFORE_MARK
  STEP id[journal] = fresh; records[journal] = 0; complete[journal] = 0 DONE
#endif
  /* claim() */
  STEP
    if
#ifdef BROKEN_MARK_OVERWRITTEN
    :: true -> set_mark(opening, fresh, journal, name); goto claimed
#else
    :: mark.state == none -> set_mark(opening, fresh, journal, name); goto look_again
    :: mark.state == opening || (mark.state == open && recovered == mark.id) ->
       seen = mark.id; seen_state = mark.state
    :: mark.state == open && recovered != mark.id -> goto died  /* EBUSY */
#endif
    fi
  DONE
  STEP if :: notice[other] -> goto died :: else fi DONE
#ifndef BROKEN_MARK_READ_ONCE
  STEP if :: mark.id != seen || mark.state != seen_state -> goto died :: else fi DONE
#endif
  STEP set_mark(opening, fresh, journal, name) DONE
  STEP writer_notice[me] = 1 DONE
  goto claimed;
look_again:
  STEP writer_notice[me] = 1 DONE
#ifndef BROKEN_ONE_NOTICE
  STEP
    if
    :: writer_notice[other] ->
       if :: mark.id == fresh -> set_mark(none, 0, 0, 0) :: else fi;
       goto died  /* EBUSY */
    :: else
    fi
  DONE
#endif
claimed:
#ifndef BROKEN_MARK_NOT_FLUSHED
  STEP flush_mark() DONE
#endif
#ifndef BROKEN_FORMAT_BEFORE_MARK
  STEP id[journal] = fresh; records[journal] = 0; complete[journal] = 0 DONE
#endif
  /* publish_journal() */
  STEP
    if
    :: !is_new
    :: is_new && place[0] != name && place[1] != name && place[2] != name -> place[journal] = name
    :: else -> set_mark(none, 0, 0, 0); goto died  /* EBUSY */
    fi
  DONE
  STEP set_mark(open, fresh, journal, name) DONE
  STEP flush_mark() DONE

  /* The file is this program's. */
  STEP
    assert(file_has_all || taken_away);
    writes[me] = 1;
    assert(!writes[other])
  DONE
goes_on:
  do
  :: atomic { !stepped_aside && !taken_away && !dark -> stepped_aside = 1; goto aside }
  :: STEP  /* a commit */
       assert(!is_stale(0) && !is_stale(1) && !is_stale(2));
       file_has_all = 0;
       complete[0] = 0; complete[1] = 0; complete[2] = 0;
       records[journal] = 1; complete[journal] = 1
     DONE
  :: STEP  /* applied, flushed, and dropped */
       if :: records[journal] -> file_has_all = complete[journal]; records[journal] = 0 :: else fi
     DONE
  :: break
  od;
  STEP
    if :: records[journal] -> file_has_all = complete[journal]; records[journal] = 0 :: else fi;
    writes[me] = 0;
    asks = 0
  DONE
#ifdef BROKEN_JOURNAL_REMOVED_FIRST
  STEP place[journal] = UNNAMED DONE
#endif
  STEP set_mark(none, 0, 0, 0) DONE
#ifdef BROKEN_SIGN_TAKEN_LATE
  STEP notice[me] = 0; writer_notice[me] = 0 DONE
#endif
  STEP sign = 0; flush_mark() DONE
  goto died;  /* and with it the journal goes, or stays without a mark */

  /* step_aside(): what is in memory is only right on what the last commit left, so it is as if this
   * program wrote all the time. */
aside:
  STEP
    if :: records[journal] -> file_has_all = complete[journal]; records[journal] = 0 :: else fi;
#ifndef BROKEN_SIGN_BEHIND_MARK
    sign = 1
#endif
  DONE
  STEP set_mark(none, 0, 0, 0) DONE
#ifdef BROKEN_SIGN_BEHIND_MARK
  STEP sign = 1 DONE
#endif
  STEP flush_mark(); place[journal] = UNNAMED DONE
#ifdef BROKEN_NOTICES_GIVEN_BACK
  STEP notice[me] = 0; writer_notice[me] = 0 DONE
#endif
  if
  :: STEP  /* come_back(): it was not renamed, and the journal goes on, where nobody has put another */
       if
       :: place[0] != name && place[1] != name && place[2] != name -> place[journal] = name
       :: else -> goto died
       fi
     DONE
  :: STEP name = 1 - name; is_new = 1; fresh = LIVES + 1 DONE  /* it was: a new one, with another id */
  fi;
#ifdef BROKEN_NOTICES_GIVEN_BACK
  STEP notice[me] = 1; writer_notice[me] = 1 DONE
#endif
  /* claim(): who found no mark before may set one, and finds our notice then. */
  atomic {
    if
    :: dark -> goto died
    :: !dark -> goto died
    :: !dark && (mark.state == none || (mark.state == opening && !notice[other])) ->
       set_mark(opening, fresh, journal, name)
    fi
  };
  if
  :: place[journal] == UNNAMED -> goto claimed
  :: else
  fi;
  STEP set_mark(open, fresh, journal, name) DONE
#ifdef BROKEN_SIGN_TAKEN_BACK
  STEP sign = 0 DONE
#endif
  STEP flush_mark() DONE
  goto goes_on;

  /* give_up_mark(): a person says so; it asks for a writer, then for the journal that the mark names. */
give_up:
#ifndef BROKEN_GIVE_UP_WITHOUT_ASKING
  STEP if :: notice[other] -> goto died :: else fi DONE
#endif
  STEP if :: has_the_journal(mark.journal) && place[mark.journal] == mark.name -> goto died :: else fi DONE
  STEP if :: mark.state != open || mark.id != seen -> goto died :: else fi DONE
  STEP
    assert(!writes[other]);
    set_mark(none, 0, 0, 0);
    /* What was acknowledged and stands only there is given up by a person. */
    file_has_all = 1
  DONE
  STEP flush_mark() DONE

died:
  atomic {
    if
    :: journal != NO_JOURNAL ->
       if
       :: place[journal] == UNNAMED -> forget(journal)
       :: place[journal] < NAMES && mark.state == none && durable.state == none &&
          !records[journal] -> forget(journal)  /* let_go_of(): nothing depends on it */
       :: place[journal] < NAMES -> holder[journal] = NOBODY
       fi
    :: else
    fi;
    if :: holder[0] == me && journal != 0 -> holder[0] = NOBODY :: else fi;
    if :: holder[1] == me && journal != 1 -> holder[1] = NOBODY :: else fi;
    if :: holder[2] == me && journal != 2 -> holder[2] = NOBODY :: else fi;
    notice[me] = 0;
    writer_notice[me] = 0;
    if :: writes[me] -> writes[me] = 0; asks = 0 :: else fi;
    running--;
    journal = NO_JOURNAL; is_new = 0; recovered = 0; fresh = 0; name = 0; seen = 0;
    seen_state = none
  };
  goto end
}

proctype power() {
  atomic { dark = 1 };
  atomic {
    running == 0 ->
    if
    :: set_mark(durable.state, durable.id, durable.journal, durable.name)
    :: flush_mark()
    fi;
    assert(mark.state != open || journal_exists || taken_away);
    dark = 0
  }
}

/* Renames a journal, or takes a mark away.  (The name of the file is the openers' to choose.) */
proctype person() {
end:
  atomic {
    if
    :: !stepped_aside && !taken_away && (writes[0] || writes[1]) -> taken_away = 1; asks = 0; set_mark(none, 0, 0, 0); flush_mark()
    :: !stepped_aside && place[0] < NAMES && place[1] != 1 - place[0] && place[2] != 1 - place[0] ->
       place[0] = 1 - place[0]; moved[0] = 1
    :: !stepped_aside && place[1] < NAMES && place[0] != 1 - place[1] && place[2] != 1 - place[1] ->
       place[1] = 1 - place[1]; moved[1] = 1
    :: !stepped_aside && place[2] < NAMES && place[0] != 1 - place[2] && place[1] != 1 - place[2] ->
       place[2] = 1 - place[2]; moved[2] = 1
    fi
  }
}

#ifdef BROKEN_SIGN_READ_FIRST
#define first_says_none (!sign)
#else
#define first_says_none (mark.state == none)
#endif
#ifdef BROKEN_NO_MARK_NO_WRITER
#define second_says_none true
#elif defined(BROKEN_SIGN_READ_FIRST)
#define second_says_none (mark.state == none)
#else
#define second_says_none (!sign)
#endif
#ifdef BROKEN_COPY_BY_NAME
#define copies_journal(n) (mark.state == open && place[mark.journal] == n)
#else
#define copies_journal(n) (mark.state == open)
#endif
#define copy_has_all(n) (file_has_all || (copies_journal(n) && complete[mark.journal]))

/* All others.  The look for a notice, and a copy, are one step; where they are right there is nothing to see.  Who finds
 * no writer at the first look, or none for a moment before the second, may answer so. */
proctype others() {
end:
  do
  :: atomic { !asks && !taken_away && (writes[0] || writes[1]) && first_says_none -> asks = 1 }
  :: asks && second_says_none -> assert(false)
  :: (writes[0] && !writer_notice[0]) || (writes[1] && !writer_notice[1]) -> assert(false)
  :: (writes[0] || writes[1]) && !taken_away && (!copy_has_all(0) || !copy_has_all(1)) -> assert(false)
  od
}

init {
  atomic {
    forget(0); forget(1); forget(2);
    set_mark(none, 0, 0, 0);
    flush_mark();
    file_has_all = 1;
    run program(0); run program(1); run power(); run person(); run others()
  }
}
