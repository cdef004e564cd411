// What the command answers to scripts.  docs/man/pawl.1 and `pawl --help` list the same.
#pragma once

namespace pawl::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,         // an error that has no code of its own; the text says what it is
  kExitUsage = 2,           // arguments that cannot be
  kExitNeedsRecovery = 3,   // verify, info: a crash left the file, its journal is whole
  kExitDamagedJournal = 4,  // durable commits are not readable any more
  kExitForeignJournal = 5,  // the journal belongs to another file, or is none, or is not believed
  kExitMissingJournal = 6,  // the file is marked as open, and there is no journal
  kExitInUse = 7,           // a process has the file mapped atomically
  kExitNewerVersion = 8,    // written by a newer Pawl
  kExitUnsafe = 9,          // doctor: something here is unsafe; a program is not protected as it is
  kExitDamagedHeap = 10,    // heap: the heap's bookkeeping is damaged
  kExitCannotRun = 126,     // run: the program cannot be run under Pawl; doctor: not at all
  kExitNotFound = 127,      // run, doctor: there is no such program
};

}  // namespace pawl::cli
