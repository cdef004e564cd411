// What the command answers to scripts: one number has one meaning, under every verb.
#pragma once

namespace pawl::cli {

// X(name, number, meaning).  `pawl --help` prints it; docs/errors.md and docs/man/pawl.1 have the
// same.
#define PAWL_EXIT_CODES(X) \
  X(Ok, 0, "done; or the answer is yes: clean, protected, can be kept") \
  X(Failure, 1, "failed; the text says why") \
  X(Usage, 2, "bad arguments") \
  X(NeedsRecovery, 3, "a crash left the file, and nothing is lost: it can be recovered") \
  X(Damaged, 4, "damaged: durable commits, or a save, cannot be read any more") \
  X(Foreign, 5, "foreign: what is there belongs to something else, or is not believed") \
  X(Missing, 6, "missing: the commits of a file that is marked as open, or a whole save") \
  X(InUse, 7, "in use: a process has the file, or runs in the directory") \
  X(OtherVersion, 8, "another version of Pawl wrote it") \
  X(Unsafe, 9, "the answer is no: unsafe, not protected, cannot be kept or restored") \
  X(DamagedHeap, 10, "the heap's bookkeeping is damaged") \
  X(SaveInTheWay, 11, "a valid save is there: restore it, or discard it") \
  X(WindowTooShort, 12, "a save takes longer than the window") \
  X(ProtectedBut, 13, "can be protected, but something is lost or different") \
  X(CannotRun, 126, "the program cannot be run, or not under Pawl") \
  X(NotFound, 127, "there is no such program")

enum ExitCode : int {
#define PAWL_EXIT_CODE(name, number, meaning) kExit##name = number,
  PAWL_EXIT_CODES(PAWL_EXIT_CODE)
#undef PAWL_EXIT_CODE
};

}  // namespace pawl::cli
