#include "medium/fork_guard.h"

#include <pthread.h>

#include <atomic>
#include <map>
#include <mutex>
#include <new>

#include "medium/fork_safe_lock.h"
#include "medium/own_process.h"

namespace pawl {
namespace {

struct Guards {
  std::mutex mutex;
  std::map<const void*, ForkGuard> of;
  std::atomic<bool> is_changing{false};
  std::atomic<std::uint64_t> memory{number_of_memory()};
  ForkSafeLock coming;
};

// By one thread.  In a child that was made without handlers another thread of its parent may hold
// the mutex, for ever, or have been about to change the guards, which are then let go.
void come_into_child(Guards& all) {
  const std::uint64_t now = number_of_memory();
  if (all.memory.load() == now) return;
  const std::lock_guard lock(all.coming);
  if (all.memory.load() == now) return;
  new (&all.mutex) std::mutex;
  if (all.is_changing.load()) new (&all.of) std::map<const void*, ForkGuard>;
  all.is_changing.store(false);
  all.memory.store(now);
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
          held.memory.store(number_of_memory());
          for (const auto& [key, guard] : held.of) guard.in_child();
          held.mutex.unlock();
        });
    return made;
  }();
  come_into_child(*all);
  return *all;
}

// While the guards are changed, with their mutex held.
class GuardsChange {
 public:
  explicit GuardsChange(Guards& all) : all_(all) { all_.is_changing.store(true); }
  ~GuardsChange() { all_.is_changing.store(false); }
  GuardsChange(const GuardsChange&) = delete;
  GuardsChange& operator=(const GuardsChange&) = delete;

 private:
  Guards& all_;
};

}  // namespace

NoFork::NoFork() { guards().mutex.lock(); }
NoFork::~NoFork() { guards().mutex.unlock(); }

void NoFork::guard(const void* key, ForkGuard guard) const {
  Guards& all = guards();
  const GuardsChange change(all);
  all.of[key] = std::move(guard);
}

void guard_fork(const void* key, ForkGuard guard) {
  const NoFork no_fork;
  no_fork.guard(key, std::move(guard));
}

void forget_fork_guard(const void* key) {
  const NoFork no_fork;
  Guards& all = guards();
  const GuardsChange change(all);
  all.of.erase(key);
}

}  // namespace pawl
