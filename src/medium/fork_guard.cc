#include "medium/fork_guard.h"

#include <pthread.h>

#include <map>
#include <mutex>
#include <new>

#include "medium/inherited_table.h"

namespace pawl {
namespace {

struct Guards {
  std::mutex mutex;
  std::map<const void*, ForkGuard> of;
  InheritedTable inherited;
};

void come_into_child(Guards& all) {
  all.inherited.come([&all](bool was_changing) {
    new (&all.mutex) std::mutex;
    if (was_changing) new (&all.of) std::map<const void*, ForkGuard>;
  });
}

// Never destroyed: a process may fork while its static objects are being destroyed.
Guards& guards() {
  static Guards* const all = [] {
    auto* made = new Guards;
    static Guards& held = *made;
    ::pthread_atfork(
        [] {
          come_into_child(held);
          held.mutex.lock();
          for (const auto& [key, guard] : held.of) guard.before();
        },
        [] {
          for (const auto& [key, guard] : held.of) guard.in_parent();
          held.mutex.unlock();
        },
        [] {
          held.inherited.has_come();
          for (const auto& [key, guard] : held.of) guard.in_child();
          held.mutex.unlock();
        });
    return made;
  }();
  come_into_child(*all);
  return *all;
}

}  // namespace

NoFork::NoFork() { guards().mutex.lock(); }
NoFork::~NoFork() { guards().mutex.unlock(); }

void NoFork::guard(const void* key, ForkGuard guard) const {
  Guards& all = guards();
  const InheritedTable::Change change(all.inherited);
  all.of[key] = std::move(guard);
}

void guard_fork(const void* key, ForkGuard guard) {
  const NoFork no_fork;
  no_fork.guard(key, std::move(guard));
}

void forget_fork_guard(const void* key) {
  const NoFork no_fork;
  Guards& all = guards();
  const InheritedTable::Change change(all.inherited);
  all.of.erase(key);
}

}  // namespace pawl
