// Does a save fit into what the power supply still gives after it has failed?
//
// The residual energy window is measured or taken from the supply's data (Narayanan and Hodson
// measured 10 to 400 ms, their section 5.3); the time of a save is measured by rehearsals, which do
// all of a save's work and let the program or machine go on.
//
// Not safe for use by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "medium/status.h"
#include "wsp/directory/own_directory.h"

namespace pawl::wsp {

// One step of a save, in the order in which they are done.
struct SaveStep {
  std::string name;  // as the operator reads it: "stop the threads"
  double took_us;
};

struct SaveTiming {
  std::vector<SaveStep> steps;
  double total_us() const;
};

struct BudgetFindings {
  std::size_t rehearsals;
  double window_us;
  double median_us;
  // The 99.9th percentile; with less than 1,000 rehearsals that is the longest of them.
  double percentile_999_us;
  double longest_us;
  // The step that took most of the time in the slowest thousandth (at least one) of the rehearsals,
  // and its share of their time.
  std::string dominating_step;
  double dominating_share;
  // Whether the 99.9th percentile fits into the window; never so without a rehearsal.
  bool holds;
};

inline constexpr std::size_t kRehearsalsMax = 10'000;
inline constexpr std::size_t kSaveStepsMax = 16;

class Rehearsals {
 public:
  // Beyond kRehearsalsMax the oldest is forgotten.
  void add(SaveTiming timing);
  std::size_t size() const { return timings_.size(); }
  BudgetFindings judge(double window_us) const;

  // Into its file in the directory, whole or not at all.
  Status write(const OwnDirectory& directory) const;
  // EINVAL where the text is none of a file of rehearsals.
  static Result<Rehearsals> parse(const std::string& text);
  // As parse(); none where there is no file.
  static Result<Rehearsals> read(const OwnDirectory& directory);
  // Of another machine.
  static void forget(const OwnDirectory& directory);

 private:
  std::vector<SaveTiming> timings_;
  std::size_t next_ = 0;  // where the oldest is, once there are kRehearsalsMax
};

}  // namespace pawl::wsp
