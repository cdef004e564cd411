// The locks of FASEs that are being finished: by their addresses.  The program's own locks are not
// touched, for those in volatile memory are gone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace pawl::fase {

// Who holds locks.
class LockOwner {};

// How long somebody waits for a lock.
enum class Patience { none, limited, unlimited };

class RecoveryLocks {
 public:
  enum class Outcome { taken, busy, timed_out, never };

  // Locks as frames name them: kReadingBit for one of many who read, kRecursiveBit for one that the
  // owner may hold already.  Busy only without patience.  Where all who could release it wait
  // themselves, or have failed, it is never taken: those of limited patience have timed out then,
  // and the others are told so when there are none of these.
  Outcome take(const LockOwner& owner, std::uint64_t lock, Patience patience);
  void release(const LockOwner& owner, std::uint64_t lock);

  // An owner that may take locks and release them; until it leaves, with all that it holds
  // released, or held for ever.
  void enter();
  void leave(const LockOwner& owner, bool releases);

 private:
  struct Lock {
    const LockOwner* writer = nullptr;
    std::uint32_t times = 0;
    std::map<const LockOwner*, std::uint32_t> readers;
  };
  struct Wait {
    const LockOwner* owner;
    std::uint64_t lock;
    Patience patience;
  };

  bool can_take(const LockOwner& owner, std::uint64_t lock);
  bool is_hopeless();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Lock> locks_;
  std::vector<Wait> waits_;
  std::size_t owners_ = 0;
};

}  // namespace pawl::fase
