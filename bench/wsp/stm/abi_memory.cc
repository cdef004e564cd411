// malloc and free, and the same of C++.  The memory is the process's own: what lies in the region
// is the program's to share out.
#include <cstddef>
#include <cstdint>

#include "stm/transaction.h"

namespace {

using pawl::bench::stm::refuse;
using pawl::bench::stm::Transaction;

void* allocate_or_refuse(std::size_t bytes) {
  void* const block = Transaction::current().allocate(bytes, false);
  if (block == nullptr) refuse("no memory");
  return block;
}

}  // namespace

#define STM_PUBLIC __attribute__((visibility("default")))

extern "C" {

STM_PUBLIC void* _ITM_malloc(std::size_t bytes) {
  return Transaction::current().allocate(bytes, false);
}
STM_PUBLIC void* _ITM_calloc(std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  return Transaction::current().allocate(all, true);
}
STM_PUBLIC void _ITM_free(void* block) { Transaction::current().release(block); }

// operator new and delete, as code in a transaction calls them.
STM_PUBLIC void* _ZGTtnwm(std::size_t bytes) { return allocate_or_refuse(bytes); }
STM_PUBLIC void* _ZGTtnam(std::size_t bytes) { return allocate_or_refuse(bytes); }
STM_PUBLIC void _ZGTtdlPv(void* block) { Transaction::current().release(block); }
STM_PUBLIC void _ZGTtdaPv(void* block) { Transaction::current().release(block); }
STM_PUBLIC void _ZGTtdlPvm(void* block, std::size_t) { Transaction::current().release(block); }
STM_PUBLIC void _ZGTtdaPvm(void* block, std::size_t) { Transaction::current().release(block); }

}  // extern "C"
