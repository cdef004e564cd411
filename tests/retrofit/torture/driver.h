// Kills a store at random, again and again, and looks at what is left.
#pragma once

#include <string>

#include "torture/store.h"

namespace pawl::retrofit {

struct Torture {
  StoreKind kind;
  std::string directory;  // scratch
  unsigned long kills;
  std::string words;  // a file, one record a line: what the store holds to begin with
  std::string pawl;   // the command, or "none"
  std::string self;   // this program
  unsigned long seed;

  bool under_pawl() const { return pawl != "none"; }
  std::string path() const { return directory + "/" + kind.file; }
};

// Under Pawl: 1 at the first store that is not as it was acknowledged.  Without: counts those,
// makes the store anew after each, and returns 0.
int torture_store(const Torture& torture);

// Without Pawl, KILLS times: a store as a power cut may leave it within its synchronising call,
// which is with any of the pages that this call is to write, and without the others.  Counts those
// that are neither as before nor as after, and returns 0.
int cut_power(const Torture& torture);

}  // namespace pawl::retrofit
