#include "wsp/process/one_processor.h"

#include <cstring>

namespace pawl::wsp {

namespace {

std::optional<cpu_set_t> processors_of(pid_t thread) {
  cpu_set_t found;
  if (::sched_getaffinity(thread, sizeof(found), &found) != 0) return std::nullopt;
  return found;
}

}  // namespace

OneProcessor::OneProcessor(const std::vector<pid_t>& threads) {
  const int number = ::sched_getcpu();
  if (number < 0 || number >= CPU_SETSIZE) return;
  cpu_set_t processor;
  CPU_ZERO(&processor);
  CPU_SET(static_cast<unsigned>(number), &processor);
  before_.reserve(threads.size() + 1);
  if (!bind(0, processor)) return;
  for (const pid_t thread : threads) bind(thread, processor);
}

OneProcessor::~OneProcessor() {
  for (const Before& one : before_)
    ::sched_setaffinity(one.thread, sizeof(one.processors), &one.processors);
}

std::optional<cpu_set_t> OneProcessor::before(pid_t thread) const {
  for (const Before& one : before_) {
    if (one.thread == thread) return one.processors;
  }
  return processors_of(thread);  // it was not bound
}

std::optional<cpu_set_t> OneProcessor::all() {
  const std::optional<cpu_set_t> now = processors_of(0);
  cpu_set_t every;
  std::memset(&every, 0xff, sizeof(every));
  if (!now || ::sched_setaffinity(0, sizeof(every), &every) != 0) return std::nullopt;
  std::optional<cpu_set_t> found = processors_of(0);
  ::sched_setaffinity(0, sizeof(*now), &*now);
  return found;
}

bool OneProcessor::bind(pid_t thread, const cpu_set_t& processor) {
  const std::optional<cpu_set_t> before = processors_of(thread);
  if (!before || ::sched_setaffinity(thread, sizeof(processor), &processor) != 0) return false;
  before_.push_back({thread, *before});
  return true;
}

}  // namespace pawl::wsp
