// Numbers of descriptors that a program does not have: for what is open while it is made again.
#pragma once

#include <sys/resource.h>

#include <set>

#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// For what is open beside the mapped files while the program's descriptors are made: of this
// process some five that are there already, and as many that are opened at a time, twice over.
constexpr int kOpenMeanwhileMax = 32;

class SpareNumbers {
 public:
  explicit SpareNumbers(const SavedProcess& saved);
  // The least that was not given yet.
  int next();
  // One that is not open in this process either.
  int next_closed();
  // By the program.
  int highest_taken() const { return *taken_.rbegin(); }

 private:
  std::set<int> taken_;
  int at_ = 0;
};

// As RLIMIT_NOFILE counts, for a restore.
rlim_t descriptors_needed(const SavedProcess& saved);
// Whether this process may have so many.  EPERM and the like: the text says what to do.
Status check_descriptor_limit(const SavedProcess& saved);

}  // namespace pawl::wsp
