// What a program does with a file under failure-atomic msync(), as a list of steps that follows
// from a seed.  The program under test takes the steps; an auditor takes them with a model in
// memory, and so knows what every commit was to leave.  All tries of the crash laboratory speak
// this language.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "workload/content.h"
#include "workload/file_model.h"
#include "workload/random.h"

namespace pawl::test {

struct Step {
  enum class Kind {
    store,      // bytes at offset, within the file
    commit,     // MS_SYNC of some pages of the window
    queue,      // MS_ASYNC of some pages
    wait,       // until all that was queued is durable
    roll_back,  // MS_INVALIDATE of some pages; waits for what was queued
    truncate,   // to length bytes
  };
  Kind kind;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::vector<std::byte> bytes;

  bool commits() const { return kind == Kind::commit || kind == Kind::queue; }
  // Everything begun so far is durable once it has returned.
  bool acknowledges() const {
    return kind == Kind::commit || kind == Kind::wait || kind == Kind::roll_back;
  }
};

// Relative frequencies of what a workload does.
struct Mixture {
  unsigned store = 0;  // a few stores, mostly small
  unsigned store_in_every_page = 0;
  unsigned commit_all = 0;
  unsigned commit_some = 0;
  unsigned queue_all = 0;
  unsigned queue_some = 0;
  unsigned wait = 0;
  unsigned roll_back_all = 0;
  unsigned roll_back_some = 0;
  unsigned grow = 0;
  unsigned shrink = 0;
  unsigned there_and_back = 0;  // from A to B and to A again, a commit each
};

struct Workload {
  std::string name;
  std::uint64_t initial_bytes;  // of random content
  std::uint64_t window_pages;   // shown in memory; the file never grows past them
  std::uint64_t journal_bytes;
  std::uint32_t apply_threshold_pages;
  Mixture mixture;
};

// All workloads, and the one of that name (null: there is none).
std::span<const Workload> workloads();
const Workload* find_workload(const std::string& name);

// A file of the workload's before its first step.
Content initial_content(const Workload& workload, std::uint64_t seed);

class Script {
 public:
  // The file holds `start`, and all of that is committed.
  Script(const Workload& workload, std::uint64_t seed, Content start);

  // The next step.  The model has taken it already.
  Step next();
  // In place of the last step, a commit that failed before it did anything: `bytes` are stored at
  // `offset`, and then these pages are committed by a step of the same kind.  `before` is the model
  // as it was.
  Step instead(const Step& failed, FileModel before, std::uint64_t offset,
               std::span<const std::byte> bytes, const PageRun& pages);
  const FileModel& model() const { return model_; }
  // Commits begun so far: the model's committed() is that of the last.
  std::uint64_t commits() const { return commits_; }

 private:
  void plan_something();
  void plan_store(std::uint64_t offset, std::size_t count);
  void plan_pages(Step::Kind kind, bool all);
  void plan_truncate(std::uint64_t size_bytes);
  void plan_there_and_back();
  void plan(Step step);

  const Workload workload_;
  Random random_;
  FileModel model_;
  std::uint64_t planned_size_;  // of the file after the planned steps
  std::deque<Step> planned_;
  std::uint64_t commits_ = 0;
};

}  // namespace pawl::test
