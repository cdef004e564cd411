#include "medium/own_threads.h"

#include <sys/stat.h>

#include <cstdint>

#include "medium/own_process.h"

namespace pawl {

void count_own_thread() {
  if (ThreadCounts* const counts = thread_counts()) counts->begun.fetch_add(1);
}

void uncount_own_thread() {
  if (ThreadCounts* const counts = thread_counts()) counts->ended.fetch_add(1);
}

// A thread is counted only while it is there.  So where the counts did not change meanwhile, all
// that they count were among those that the kernel knew of.
bool has_other_threads() {
  constexpr std::uint64_t kLinksOfNoThread = 2;  // of a directory that has one for each thread
  static const ThreadCounts none;
  const ThreadCounts* const found = thread_counts();
  const ThreadCounts& counts = found != nullptr ? *found : none;
  const std::uint32_t ended = counts.ended.load();
  const std::uint32_t begun = counts.begun.load();
  struct stat tasks{};
  if (::stat("/proc/self/task", &tasks) != 0) return true;
  if (counts.begun.load() != begun || counts.ended.load() != ended) return true;
  return tasks.st_nlink != kLinksOfNoThread + 1 + (begun - ended);
}

}  // namespace pawl
