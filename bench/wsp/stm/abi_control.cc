// What gcc -fgnu-tm calls to begin and end transactions: the Intel transactional memory ABI 1.1, as
// gcc's libitm describes it.  What is not there ends the program with a text, or is missing when it
// is linked.
#include <cstdint>

#include "stm/transaction.h"

namespace {

using pawl::bench::stm::Jump;
using pawl::bench::stm::refuse;
using pawl::bench::stm::Transaction;

// Of a transaction's code.
constexpr std::uint32_t kIsInstrumented = 1;
constexpr std::uint32_t kGoesIrrevocable = 0x40;
// What its code is to do.
constexpr std::uint32_t kRunInstrumented = 1;
constexpr std::uint32_t kSaveLiveVariables = 4;

constexpr std::uint32_t kInTransaction = 1;
constexpr std::uint64_t kNoTransaction = 1;  // the ABI's number of none

}  // namespace

extern "C" {

// Behind _ITM_beginTransaction (jump.cc).
__attribute__((visibility("hidden"))) std::uint32_t pawl_stm_begin(std::uint32_t properties,
                                                                   const Jump* from) {
  if ((properties & kIsInstrumented) == 0 || (properties & kGoesIrrevocable) != 0)
    refuse("a transaction does what cannot be taken back");
  Transaction::current().begin(*from);
  return kRunInstrumented | kSaveLiveVariables;
}

__attribute__((visibility("default"))) void _ITM_commitTransaction() {
  Transaction::current().commit();
}
__attribute__((visibility("default"))) void _ITM_commitTransactionEH(void*) {
  Transaction::current().commit();
}
[[noreturn]] __attribute__((visibility("default"))) void _ITM_abortTransaction(int) {
  Transaction::current().cancel();
}
[[noreturn]] __attribute__((visibility("default"))) void _ITM_changeTransactionMode(int) {
  refuse("a transaction would become irrevocable: what it stores could not be taken back");
}

__attribute__((visibility("default"))) std::uint32_t _ITM_inTransaction() {
  return Transaction::current().is_active() ? kInTransaction : 0;
}
__attribute__((visibility("default"))) std::uint64_t _ITM_getTransactionId() {
  const Transaction& transaction = Transaction::current();
  return transaction.is_active() ? kNoTransaction + transaction.number() : kNoTransaction;
}

}  // extern "C"
