// A thread's transaction: what it reads is checked against what others commit (TL2, versions.h),
// what it stores waits in a write set, and is logged before it is put into its place (redo_log.h).
//
// Where there is no region, or a store is not in it, all is the same but for the log.
//
// Inner transactions are part of the outer one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stm/jump.h"
#include "stm/redo_log.h"
#include "stm/versions.h"
#include "stm/write_set.h"

namespace pawl::bench::stm {

// What the run-time asked of the memory for the thread's transactions.
struct Counts {
  std::uint64_t fences = 0;
  std::uint64_t lines_flushed = 0;  // written past the caches, too
};

class Transaction {
 public:
  // Of the calling thread.
  static Transaction& current();

  bool is_active() const { return depth_ > 0; }
  // Since the transaction that is under way began for the first time.
  std::uint64_t number() const { return number_; }
  const Counts& counts() const { return counts_; }

  // True: it is an outer one.
  bool begin(const Jump& from);
  void commit();
  // Begins the outer transaction anew, as if it had done nothing.
  [[noreturn]] void retry();
  // It has done nothing; goes on behind it.
  [[noreturn]] void cancel();

  void read(const void* at, void* into, std::size_t count);
  void write(void* at, const void* from, std::size_t count);
  // Of memory that is stored to without write(): as it was, if it begins anew.
  void keep(const void* at, std::size_t count);

  // As malloc, and as free: undone with it.
  void* allocate(std::size_t bytes, bool is_zeroed);
  void release(void* block);

  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

 private:
  Transaction();
  ~Transaction();

  struct Taken {
    Version* version;
    std::uint64_t before;
  };
  struct Kept {
    std::byte* at;
    std::vector<std::byte> bytes;
  };

  void begin_attempt();
  bool is_on_own_stack(std::uint64_t address) const;
  std::uint64_t read_word(std::uint64_t address);
  std::uint64_t read_memory(std::uint64_t address);
  bool take_written();
  bool reads_hold() const;
  void give_back(std::uint64_t version);
  void put_in_place(std::uint64_t time);
  void collect_log();
  void flush_written();
  void forget();
  void roll_back();

  const std::size_t index_;
  std::uint64_t number_ = 0;
  unsigned depth_ = 0;
  unsigned attempts_ = 0;
  std::uint64_t began_ = 0;  // on the clock of versions
  Jump from_{};
  Counts counts_;

  std::vector<Version*> reads_;
  WriteSet writes_;
  std::vector<Taken> taken_;
  std::vector<LoggedWord> logged_;
  std::vector<std::uint64_t> lines_;
  std::vector<Kept> kept_;
  std::vector<void*> allocated_;
  std::vector<void*> released_;
};

// Ends the program, with a text: what it asks for is not there.
[[noreturn]] void refuse(const char* what);

}  // namespace pawl::bench::stm
