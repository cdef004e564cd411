#include "mapping/fork_guard.h"

#include <pthread.h>

#include <map>
#include <mutex>

namespace pawl {
namespace {

struct Guards {
  std::mutex mutex;
  std::map<const void*, ForkGuard> of;
};

// Never destroyed: a process may fork while its static objects are being destroyed.
Guards& guards() {
  static Guards* const all = [] {
    auto* made = new Guards;
    ::pthread_atfork(
        [] {
          guards().mutex.lock();
          for (const auto& [key, guard] : guards().of) guard.before();
        },
        [] {
          for (const auto& [key, guard] : guards().of) guard.in_parent();
          guards().mutex.unlock();
        },
        [] {
          for (const auto& [key, guard] : guards().of) guard.in_child();
          guards().mutex.unlock();
        });
    return made;
  }();
  return *all;
}

}  // namespace

void guard_fork(const void* key, ForkGuard guard) {
  Guards& all = guards();
  const std::lock_guard lock(all.mutex);
  all.of[key] = std::move(guard);
}

void forget_fork_guard(const void* key) {
  Guards& all = guards();
  const std::lock_guard lock(all.mutex);
  all.of.erase(key);
}

}  // namespace pawl
