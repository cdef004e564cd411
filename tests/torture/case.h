// One case: a few files of one workload in one place, which live through many crashes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "torture/child.h"
#include "torture/counts.h"
#include "torture/evidence.h"
#include "torture/file_systems.h"
#include "torture/oracle.h"
#include "torture/writer.h"
#include "workload/random.h"

namespace pawl::test {

struct Settings {
  std::string writer;    // the program
  bool plain = false;    // mmap() and msync(), without Pawl
  std::string workload;  // these: empty for all
  std::string tracker;
  std::string apply;
  bool fill = true;  // file systems that may be filled are filled now and then
};

// Something was lost or damaged, or Pawl did not do what it must after a crash.
struct Loss : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How long things take here, so that kills meet them.
class Durations {
 public:
  void note(const std::string& what, microseconds time);
  // From nothing to somewhat longer than it takes.
  microseconds within(const std::string& what, Random& random) const;

 private:
  std::map<std::string, double> mean_us_;
};

class Case {
 public:
  Case(const Settings& settings, const Place& place, std::uint64_t seed, std::uint64_t number,
       Counts& counts, Durations& durations);
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case();

  // Until its lives are over, or there is enough.  Throws Loss.
  void run(const std::function<bool()>& enough);

  // What happened, for a person.
  const std::vector<std::string>& story() const { return story_; }
  // Keeps what is known of the files as they were before the last processes were at them; returns
  // the directories, each for audit_kept().
  std::vector<std::string> keep_evidence(const std::string& directory) const;

 private:
  struct File {
    std::string path;
    Oracle oracle;
    std::vector<Evidence> evidence;  // of each crash since it was last found to be whole
  };
  enum class Target { opening, committing, closing, none };

  bool chance(unsigned percent) { return below(random_, 100) < percent; }
  void tell(std::string line) { story_.push_back(std::move(line)); }

  bool needs_recovery() const;  // some file, by the next writer
  void live(bool last);
  std::vector<std::string> writer_command(Target target, std::uint64_t seed);
  // Each brings the writer to the moment where it is to be killed.
  void approach(Writer& writer, Target target, Clock::time_point started);
  void approach_with_full_disk(Writer& writer);
  void wait_for(Writer& writer, const char* what, const Writer::Condition& condition);
  void settle(Writer& writer, Target target, std::uint64_t seed);
  void count_kill(const Writer& writer, Target target);
  void count_kill_in(const std::string& what);

  void audit_all();
  void recover(File& file, bool may_be_killed);
  // False: there is no space to do it.
  bool recover_once(File& file);
  bool kill_while_recovering(File& file);
  bool is_refusal(int wait_status, const std::string& said) const;
  int recover_in_child(const std::string& path) const;
  void audit(File& file);
  void check_nothing_is_left(const File& file, bool closed) const;

  const Settings& settings_;
  const Place& place_;
  Counts& counts_;
  Durations& durations_;
  Random random_;
  const std::string directory_;
  Filler filler_;
  const Workload* workload_;
  std::vector<File> files_;
  std::vector<std::string> story_;
};

}  // namespace pawl::test
