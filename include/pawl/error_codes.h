/* What pawl_last_error_code() answers: one number for each condition after which a program, or who
 * runs it, would do something else.  Included by pawl/pawl.h.
 *
 * Texts may change, codes may not: no number is ever changed, or used again for something else.  A
 * later version may have a new code where there was a general one: take a number that you do not
 * know for what errno says.  docs/errors.md says of each what to do. */
#ifndef PAWL_ERROR_CODES_H
#define PAWL_ERROR_CODES_H

enum pawl_error {
  PAWL_ERROR_NONE = 0, /* no call of this thread has failed */

  /* From any call. */
  PAWL_ERROR_SYSTEM = 1,                /* a system call failed; errno says which way */
  PAWL_ERROR_NO_MEMORY = 2,             /* out of memory; nothing was lost */
  PAWL_ERROR_NO_SPACE = 3,              /* the disk, or the user's quota, is full */
  PAWL_ERROR_IO = 4,                    /* the disk failed to read, write or flush */
  PAWL_ERROR_INVALID_ARGUMENT = 5,      /* an argument, a flag or an option is invalid */
  PAWL_ERROR_INVALID_VARIABLE = 6,      /* an environment variable has an invalid value */
  PAWL_ERROR_NO_PERMISSION = 7,         /* this user may not do that */
  PAWL_ERROR_READ_ONLY_FILE_SYSTEM = 8, /* the file system is mounted for reading only */
  PAWL_ERROR_NOT_FOUND = 9,             /* there is no such file or directory */
  PAWL_ERROR_TOO_LARGE = 10,            /* a file, a size or a block beyond what can be */
  PAWL_ERROR_FILE_SIZE_LIMIT = 11,      /* past this process's RLIMIT_FSIZE; nothing was lost */
  PAWL_ERROR_TOO_MANY = 12,             /* the process or the group has its maximum of these */
  PAWL_ERROR_FORKED_CHILD = 13,         /* a forked child may not change what its parent opened */
  PAWL_ERROR_CLOSED = 14,               /* the mapping, group or file of sections was closed */
  PAWL_ERROR_STILL_OPEN = 15,           /* something that this process has open is in the way */
  PAWL_ERROR_NO_PROC = 16,              /* /proc is needed, and is not mounted */

  /* To map or open a file. */
  PAWL_ERROR_NOT_READ_WRITE = 20,               /* the descriptor is not open with O_RDWR */
  PAWL_ERROR_NOT_REGULAR_FILE = 21,             /* a device, a pipe, a directory */
  PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM = 22,      /* its file system lacks what is needed */
  PAWL_ERROR_NO_NAME = 23,                      /* the file was unlinked, or is a memory file */
  PAWL_ERROR_NAME_TOO_LONG = 24,                /* no room for ".pawl", or for a group's names */
  PAWL_ERROR_NAMES_JOURNAL = 25,                /* the name is a journal's; name its file */
  PAWL_ERROR_NAMES_GROUP = 26,                  /* the file names a group; open the group */
  PAWL_ERROR_JOURNAL_NAME_TAKEN = 27,           /* a link or a directory has the journal's name */
  PAWL_ERROR_JOURNAL_ON_OTHER_FILE_SYSTEM = 28, /* file and journal can be lost separately */
  PAWL_ERROR_ADDRESS_TAKEN = 29,                /* something else is at these addresses */
  PAWL_ERROR_NO_ADDRESS_SPACE = 30,             /* so many addresses are not free */
  PAWL_ERROR_NOT_PERSISTENT_MEMORY = 31,        /* asked for as memory, and is on a disk */
  PAWL_ERROR_TRACKER_UNAVAILABLE = 32,          /* kernel or sandbox lacks what it needs */
  PAWL_ERROR_NO_STORE_MARKS = 33,               /* tracker store, and no module has marks */
  PAWL_ERROR_NO_SPACE_FOR_JOURNAL = 34,         /* free some, or set a smaller journal */
  PAWL_ERROR_NO_SPACE_FOR_MARK = 35,            /* no room for the attribute user.pawl */
  PAWL_ERROR_WRONG_KIND_OF_FILE = 36,           /* no heap, or no file of sections */

  /* Other users of the file. */
  PAWL_ERROR_IN_USE = 40,                   /* the file has another writer */
  PAWL_ERROR_OPENING_RACED = 41,            /* others opened it at the same moment; try again */
  PAWL_ERROR_REPLACED = 42,                 /* it was replaced while it was looked at */
  PAWL_ERROR_JOURNAL_LOCKED_BY_READER = 43, /* who may only read the journal has locked it */
  PAWL_ERROR_WRITERS_UNKNOWN = 44,          /* nobody can tell whether it has a writer */

  /* What a crash left, and what became of it since.  Nothing was changed. */
  PAWL_ERROR_DAMAGED_RECORD = 50,        /* an acknowledged commit is not readable any more */
  PAWL_ERROR_DAMAGED_HEADER = 51,        /* the same of the journal's header */
  PAWL_ERROR_CUT_JOURNAL = 52,           /* the journal is shorter than it was made */
  PAWL_ERROR_NOT_A_JOURNAL = 53,         /* of that name, and no journal, or an empty one */
  PAWL_ERROR_FOREIGN_JOURNAL = 54,       /* the journal belongs to another file */
  PAWL_ERROR_COPIED_JOURNAL = 55,        /* a copy of the journal, perhaps older than the file */
  PAWL_ERROR_JOURNAL_OF_ORIGINAL = 56,   /* the file is a copy, beside the original's journal */
  PAWL_ERROR_COPIED_FILE = 57,           /* the file is a copy of one that was open */
  PAWL_ERROR_MARK_REMOVED = 58,          /* the attribute user.pawl was taken from the file */
  PAWL_ERROR_UNKNOWN_MARK = 59,          /* the attribute is of another version, or damaged */
  PAWL_ERROR_UNBELIEVED_JOURNAL = 60,    /* someone who may not write the file could make it */
  PAWL_ERROR_JOURNAL_OF_OTHER_USER = 61, /* the journal's owner, or root, has to recover */
  PAWL_ERROR_MISSING_JOURNAL = 62,       /* a crash left the file open, and its journal is gone */
  PAWL_ERROR_MOVED_JOURNAL = 63,         /* the journal is there, under another name */
  PAWL_ERROR_UNSUPPORTED_VERSION = 64,   /* another version of Pawl wrote it */
  PAWL_ERROR_JOURNAL_CHANGED = 65,       /* the journal changed while it was read */
  PAWL_ERROR_NO_SPACE_TO_RECOVER = 66,   /* free some and open it again */
  PAWL_ERROR_LEFT_BEHIND = 67,           /* mark or journal stays; the file has all commits */
  PAWL_ERROR_GROUP_FILE_MISSING = 70,    /* a file of the group, or its journal, is not there */
  PAWL_ERROR_GROUP_FILE_REPLACED = 71,   /* another file has the name of one of the group */
  PAWL_ERROR_GROUP_FILE_RENAMED = 72,    /* files of the group changed their names */
  PAWL_ERROR_GROUP_MISMATCH = 73,        /* file, side file and group's journal do not match */

  /* To commit, roll back, resize or unmap. */
  PAWL_ERROR_NOT_MAPPED = 80,           /* no atomic mapping is, or wholly is, at the addresses */
  PAWL_ERROR_MAPPING_BROKEN = 81,       /* a failure was final: map the file anew */
  PAWL_ERROR_DESCRIPTOR_CLOSED = 82,    /* the program closed a descriptor of Pawl's */
  PAWL_ERROR_STORES_UNSEEN = 83,        /* stores are not recorded any more: map it anew */
  PAWL_ERROR_MEMORY_UNMAPPED = 84,      /* a part was unmapped past libpawl */
  PAWL_ERROR_JOURNAL_REMOVED = 86,      /* somebody removed the journal of a mapped file */
  PAWL_ERROR_JOURNAL_TOO_READABLE = 87, /* more may read it than the file, which changed */
  PAWL_ERROR_NO_SPACE_FOR_COMMIT = 88,  /* free some and call again; nothing was lost */
  PAWL_ERROR_COMMIT_TOO_LARGE = 89,     /* no room for the journal to grow for this commit */
  PAWL_ERROR_REOPEN_TO_GROW = 90,       /* as memory it has no more addresses: open it anew */

  /* Groups. */
  PAWL_ERROR_GROUP_OTHER_OWNER = 100, /* a group has files of its own owner only */

  /* Copies. */
  PAWL_ERROR_COPY_OUTRUN = 110,        /* writers were faster than the copy; try again */
  PAWL_ERROR_COPY_TARGET_EXISTS = 111, /* and may not be replaced */
  PAWL_ERROR_COPY_TARGET_IN_USE = 112, /* is mapped, or a crash left it */

  /* The persistent heap; some also from files of failure-atomic sections. */
  PAWL_ERROR_DAMAGED_HEAP = 120,       /* its bookkeeping, or its header, is damaged */
  PAWL_ERROR_WRONG_BLOCK = 121,        /* no allocated block starts there: misuse */
  PAWL_ERROR_SYNC_REFUSED = 122,       /* since a misuse: roll back, or open the heap anew */
  PAWL_ERROR_HEAP_FULL = 123,          /* the heap has its maximum */
  PAWL_ERROR_OTHER_LAYOUT = 124,       /* of another machine, or laid out another way */
  PAWL_ERROR_NO_SUCH_ROOT = 125,       /* the heap has no root of that name */
  PAWL_ERROR_ROOT_OF_OTHER_TYPE = 126, /* the root was made as another type */
  PAWL_ERROR_STRAY_POINTERS = 127,     /* pointers would not survive this process */
  PAWL_ERROR_LOCK_HELD = 128,          /* a mutex in the heap is locked */
  PAWL_ERROR_NO_HEAP = 129,            /* the container's heap is not, or not any more, open */
  PAWL_ERROR_DIFFERENT_HEAPS = 130,    /* swap() of containers of different heaps */

  /* Failure-atomic sections. */
  PAWL_ERROR_DAMAGED_SECTIONS = 140,    /* header, logs or blocks of the file are damaged */
  PAWL_ERROR_UNSUPPORTED_PROGRAM = 141, /* the program is built in a way that cannot serve */
  PAWL_ERROR_OTHER_PROGRAM = 142,       /* the program that was interrupted has to open it */
  PAWL_ERROR_SECTIONS_UNFINISHED = 143, /* interrupted sections could not be finished */
  PAWL_ERROR_WAS_UNPROTECTED = 144      /* it ended while open without protection */
};

#endif
