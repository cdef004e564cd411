#include "mapping/fork_guard.h"

#include <pthread.h>
#include <map>
#include <mutex>

namespace pawl {
namespace {

struct Guards {
  std::mutex mutex;
  std::map<const void*, std::function<void()>> in_child;
};

// Never destroyed: a process may fork while its static objects are being destroyed.
Guards& guards() {
  static Guards* const all = [] {
    auto* made = new Guards;
    ::pthread_atfork([] { guards().mutex.lock(); }, [] { guards().mutex.unlock(); },
                     [] {
                       for (const auto& [key, in_child] : guards().in_child) in_child();
                       guards().mutex.unlock();
                     });
    return made;
  }();
  return *all;
}

}  // namespace

void guard_fork(const void* key, std::function<void()> in_child) {
  Guards& all = guards();
  const std::lock_guard lock(all.mutex);
  all.in_child[key] = std::move(in_child);
}

void forget_fork_guard(const void* key) {
  Guards& all = guards();
  const std::lock_guard lock(all.mutex);
  all.in_child.erase(key);
}

}  // namespace pawl
