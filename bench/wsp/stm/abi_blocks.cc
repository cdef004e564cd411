// memcpy, memmove and memset, of memory that is in the transaction or not.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "stm/transaction.h"

namespace {

using pawl::bench::stm::Transaction;

constexpr std::size_t kPieceBytes = 256;

template <bool kReads, bool kWrites>
void copy_piece(std::byte* to, const std::byte* from, std::size_t count) {
  std::array<std::byte, kPieceBytes> piece;
  Transaction& transaction = Transaction::current();
  if (kReads) {
    transaction.read(from, piece.data(), count);
  } else {
    std::memcpy(piece.data(), from, count);
  }
  if (kWrites) {
    transaction.write(to, piece.data(), count);
  } else {
    std::memcpy(to, piece.data(), count);
  }
}

// They may overlap.
template <bool kReads, bool kWrites>
void* move(void* to, const void* from, std::size_t count) {
  auto* const first = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  const bool is_forward = first <= source;
  for (std::size_t done = 0; done < count;) {
    const std::size_t piece = std::min(kPieceBytes, count - done);
    const std::size_t at = is_forward ? done : count - done - piece;
    copy_piece<kReads, kWrites>(first + at, source + at, piece);
    done += piece;
  }
  return to;
}

void* fill(void* to, int value, std::size_t count) {
  std::array<std::byte, kPieceBytes> piece;
  piece.fill(static_cast<std::byte>(value));
  for (std::size_t done = 0; done < count;) {
    const std::size_t bytes = std::min(kPieceBytes, count - done);
    Transaction::current().write(static_cast<std::byte*>(to) + done, piece.data(), bytes);
    done += bytes;
  }
  return to;
}

}  // namespace

#define STM_PUBLIC __attribute__((visibility("default")))
#define STM_BLOCKS(NAME, READS, WRITES) \
  STM_PUBLIC void* _ITM_memcpy##NAME(void* to, const void* from, std::size_t count) { \
    return move<READS, WRITES>(to, from, count); \
  } \
  STM_PUBLIC void* _ITM_memmove##NAME(void* to, const void* from, std::size_t count) { \
    return move<READS, WRITES>(to, from, count); \
  }
#define STM_BLOCKS_READ(NAME) \
  STM_BLOCKS(R##NAME##Wn, true, false) \
  STM_BLOCKS(R##NAME##Wt, true, true) \
  STM_BLOCKS(R##NAME##WtaR, true, true) \
  STM_BLOCKS(R##NAME##WtaW, true, true)

extern "C" {

STM_BLOCKS(RnWt, false, true)
STM_BLOCKS(RnWtaR, false, true)
STM_BLOCKS(RnWtaW, false, true)
STM_BLOCKS_READ(t)
STM_BLOCKS_READ(taR)
STM_BLOCKS_READ(taW)

STM_PUBLIC void* _ITM_memsetW(void* to, int value, std::size_t count) {
  return fill(to, value, count);
}
STM_PUBLIC void* _ITM_memsetWaR(void* to, int value, std::size_t count) {
  return fill(to, value, count);
}
STM_PUBLIC void* _ITM_memsetWaW(void* to, int value, std::size_t count) {
  return fill(to, value, count);
}

}  // extern "C"
