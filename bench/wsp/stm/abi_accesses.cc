// Reads and writes of variables.  The ABI tells apart what was read or written before; here it
// makes no difference.
#include <immintrin.h>

#include <cstdint>

#include "stm/transaction.h"

namespace {

using pawl::bench::stm::Transaction;

template <class T>
T read(const T* at) {
  T value;
  Transaction::current().read(at, &value, sizeof value);
  return value;
}
template <class T>
void write(T* at, T value) {
  Transaction::current().write(at, &value, sizeof value);
}

}  // namespace

#define STM_PUBLIC __attribute__((visibility("default")))
#define STM_ACCESSES(NAME, TYPE) \
  STM_PUBLIC TYPE _ITM_R##NAME(const TYPE* at) { return read(at); } \
  STM_PUBLIC TYPE _ITM_RaR##NAME(const TYPE* at) { return read(at); } \
  STM_PUBLIC TYPE _ITM_RaW##NAME(const TYPE* at) { return read(at); } \
  STM_PUBLIC TYPE _ITM_RfW##NAME(const TYPE* at) { return read(at); } \
  STM_PUBLIC void _ITM_W##NAME(TYPE* at, TYPE value) { write(at, value); } \
  STM_PUBLIC void _ITM_WaR##NAME(TYPE* at, TYPE value) { write(at, value); } \
  STM_PUBLIC void _ITM_WaW##NAME(TYPE* at, TYPE value) { write(at, value); } \
  STM_PUBLIC void _ITM_L##NAME(const TYPE* at) { Transaction::current().keep(at, sizeof *at); }

extern "C" {

STM_ACCESSES(U1, std::uint8_t)
STM_ACCESSES(U2, std::uint16_t)
STM_ACCESSES(U4, std::uint32_t)
STM_ACCESSES(U8, std::uint64_t)
STM_ACCESSES(F, float)
STM_ACCESSES(D, double)
STM_ACCESSES(E, long double)
STM_ACCESSES(M128, __m128)

STM_PUBLIC void _ITM_LB(const void* at, std::size_t count) {
  Transaction::current().keep(at, count);
}

}  // extern "C"
