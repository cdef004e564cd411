#include "fase/recovery_locks.h"

#include <algorithm>

#include "fase/format.h"
#include "medium/status.h"

namespace pawl::fase {
namespace {

bool is_reading(std::uint64_t lock) { return (lock & kReadingBit) != 0; }
std::uint64_t address_of(std::uint64_t lock) { return lock & ~kLockBits; }

}  // namespace

bool RecoveryLocks::can_take(const LockOwner& owner, std::uint64_t lock) {
  const Lock& of = locks_[address_of(lock)];
  if (is_reading(lock)) return of.writer == nullptr;
  if (of.writer == &owner) return (lock & kRecursiveBit) != 0;
  return of.writer == nullptr && of.readers.empty();
}

bool RecoveryLocks::is_hopeless() {
  return waits_.size() == owners_ && std::none_of(waits_.begin(), waits_.end(), [&](Wait& wait) {
           return can_take(*wait.owner, wait.lock);
         });
}

RecoveryLocks::Outcome RecoveryLocks::take(const LockOwner& owner, std::uint64_t lock,
                                           Patience patience) {
  // No lock of another FASE's.
  if (lock == kSectionLock) return Outcome::taken;
  std::unique_lock guard(mutex_);
  if (!can_take(owner, lock)) {
    if (patience == Patience::none) return Outcome::busy;
    waits_.push_back({&owner, lock, patience});
    const auto forget = [&] {
      std::erase_if(waits_, [&](const Wait& wait) { return wait.owner == &owner; });
    };
    while (!can_take(owner, lock)) {
      if (is_hopeless()) {
        if (patience == Patience::limited) {
          forget();
          return Outcome::timed_out;
        }
        if (std::ranges::none_of(
                waits_, [](const Wait& wait) { return wait.patience == Patience::limited; })) {
          forget();
          return Outcome::never;
        }
        changed_.notify_all();
      }
      changed_.wait(guard);
    }
    forget();
  }
  Lock& of = locks_[address_of(lock)];
  if (is_reading(lock)) {
    ++of.readers[&owner];
  } else {
    of.writer = &owner;
    ++of.times;
  }
  return Outcome::taken;
}

void RecoveryLocks::release(const LockOwner& owner, std::uint64_t lock) {
  if (lock == kSectionLock) return;
  const std::lock_guard guard(mutex_);
  Lock& of = locks_[address_of(lock)];
  if (is_reading(lock)) {
    PAWL_ASSERT(of.readers[&owner] > 0);
    if (--of.readers[&owner] == 0) of.readers.erase(&owner);
  } else {
    PAWL_ASSERT(of.writer == &owner && of.times > 0);
    if (--of.times == 0) of.writer = nullptr;
  }
  changed_.notify_all();
}

void RecoveryLocks::enter() {
  const std::lock_guard guard(mutex_);
  ++owners_;
}

void RecoveryLocks::leave(const LockOwner& owner, bool releases) {
  const std::lock_guard guard(mutex_);
  if (releases) {
    for (auto& [address, lock] : locks_) {
      lock.readers.erase(&owner);
      if (lock.writer != &owner) continue;
      lock.writer = nullptr;
      lock.times = 0;
    }
  }
  --owners_;
  changed_.notify_all();
}

}  // namespace pawl::fase
