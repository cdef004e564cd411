// One store under one workload, in the process of its system.  Knows what the store must hold, and
// checks that it does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stores/store.h"
#include "stores/workload.h"

namespace pawl::bench {

struct TurnCosts {
  double settle_us = 0;     // until nothing of the store's was left to do in the background
  double processor_us = 0;  // of all threads, in the turn and in the background after it
  std::uint64_t logged_bytes = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t written_bytes = 0;
};

// Every function throws std::runtime_error when the store fails, or does not hold what it must.
class Session {
 public:
  // Opens an empty store, and fills it up to where the timed insertions begin.
  Session(const StoreKind& kind, const std::string& directory, const Workload& workload);

  // The operation's next `commits` commits, at most those that are left.  Returns the time of each,
  // in microseconds.
  std::vector<double> turn(Operation operation, std::uint64_t commits, TurnCosts& costs);
  // Reads every key.
  void check();
  // Puts back what was deleted, closes the store, opens it again, and reads every key.
  void check_reopened();

 private:
  double commit(Operation operation, const std::vector<std::uint32_t>& keys);
  double read(std::uint32_t key);
  void change(Operation operation, const std::vector<std::uint32_t>& keys);
  void fill(const std::vector<std::uint32_t>& keys);
  [[noreturn]] void fail(std::uint32_t key, const char* how) const;

  const StoreKind kind_;
  const StoreSetup setup_;
  const Workload workload_;
  std::unique_ptr<Store> store_;
  std::vector<std::string> key_texts_;
  std::vector<std::uint32_t> versions_;  // by key; 0: not there
  std::vector<std::uint32_t> orders_[kOperations];
  std::size_t positions_[kOperations] = {};
  std::vector<std::string> values_;  // for the commit in hand
  std::string found_;
  std::string expected_;
};

}  // namespace pawl::bench
