#include "fase/undo_dependences.h"

#include <algorithm>

namespace pawl::fase {

void UndoDependences::depend(std::uint32_t log, FaseName on) {
  const std::lock_guard lock(mutex_);
  Log& of = logs_[log];
  if (std::ranges::find(of.depends_on, on) == of.depends_on.end()) of.depends_on.push_back(on);
  of.has_any.store(true, std::memory_order_relaxed);
  of.clock.store(std::max(clock(log), clock(log_of(on))) + 1, std::memory_order_relaxed);
}

void UndoDependences::will_release(FaseName name, std::uint64_t lock) {
  std::atomic<FaseName>& place = slot(lock);
  FaseName before = place.load(std::memory_order_acquire);
  do {
    // Of another lock: who takes that one finds this FASE from now on, and through it the other.
    if (before != 0 && log_of(before) != log_of(name) && !is_settled(before))
      depend(log_of(name), before);
  } while (!place.compare_exchange_weak(before, name, std::memory_order_acq_rel));
}

// With the mutex held.
std::vector<FaseName> UndoDependences::reachable(std::uint32_t log) const {
  std::vector<FaseName> found;
  const auto add = [&](const std::vector<FaseName>& names) {
    for (const FaseName name : names) {
      const bool is_new =
          log_of(name) != log && !is_settled(name) && std::ranges::find(found, name) == found.end();
      if (is_new) found.push_back(name);
    }
  };
  add(logs_[log].depends_on);
  for (std::size_t i = 0; i < found.size(); ++i) add(logs_[log_of(found[i])].depends_on);
  return found;
}

std::vector<FaseName> UndoDependences::all_of(std::uint32_t log) const {
  const std::lock_guard lock(mutex_);
  return reachable(log);
}

void UndoDependences::ended(FaseName name) {
  logs_[log_of(name)].ended.store(number_of(name), std::memory_order_release);
}

bool UndoDependences::try_settle(FaseName name) {
  Log& of = logs_[log_of(name)];
  if (has_any(log_of(name))) {
    const std::lock_guard lock(mutex_);
    const auto has_ended = [&](FaseName other) {
      return logs_[log_of(other)].ended.load(std::memory_order_acquire) >= number_of(other);
    };
    if (!std::ranges::all_of(reachable(log_of(name)), has_ended)) return false;
    of.depends_on.clear();
    of.has_any.store(false, std::memory_order_relaxed);
  }
  // One that logged nothing has no number, and nobody waits for it.
  if (number_of(name) != 0) of.settled.store(number_of(name), std::memory_order_release);
  return true;
}

}  // namespace pawl::fase
