// From what was seen to what is to be said: can Pawl's preload face protect the program's files?
#pragma once

#include <string>
#include <vector>

#include "cli/watch/facts.h"

namespace pawl::cli::watch {

enum class Weight {
  note,    // good to know; Pawl does what the program means
  but,     // Pawl can protect the file, and something is lost or different unless it is seen to
  cannot,  // Pawl refuses it, or does not see it
};

struct Remark {
  std::string code;  // for scripts; docs/doctor.md lists them
  Weight weight = Weight::note;
  std::uint64_t count = 1;
  std::string seen;  // an example, or empty
  std::string why;
  std::string advice;
};

struct FileJudgement {
  FileKey key;
  Weight verdict = Weight::note;  // the heaviest of its remarks
  std::vector<Remark> remarks;    // the heaviest first
  bool is_asynchronous = false;   // synchronised by msync(MS_ASYNC), or mostly so
  bool needs_nothing = false;     // what a crash does to it harms nothing, without Pawl too
  bool is_left_out = false;       // of the line to type
  bool is_in_doubt = false;       // so is it, for all of it may be lost
};

struct Judgement {
  std::vector<FileJudgement> files;
  std::vector<Remark> remarks;  // on the program as a whole
  bool is_fine = true;          // there are files, and nothing is heavier than a note
  bool can_protect = true;      // there are files, and nothing is heavier than a "but"
};

Judgement judge(const ProgramFacts& facts);

const char* weight_name(Weight weight);

}  // namespace pawl::cli::watch
