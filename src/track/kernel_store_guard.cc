#include "track/kernel_store_guard.h"

#include <cstdint>

#include "medium/inherited_memory.h"
#include "medium/medium.h"
#include "track/fault_table.h"

namespace pawl {

void KernelStoreGuard::hold(void* address, std::size_t length) {
  inherited_memory::open_range(address, length);
  const auto first_byte = reinterpret_cast<std::uint64_t>(address);
  // A length beyond the end of the address space is the system call's to refuse.
  if (first_byte + length - 1 < first_byte) return;
  const std::uint64_t first = first_byte / kPageBytes;
  const std::uint64_t end = (first_byte + length - 1) / kPageBytes + 1;
  // Announced before opened: a collect in between arms what is then opened, one after it lets be.
  ticket_ = FaultTable::process().begin_kernel_store(this, first, end);
  is_holding_ = true;
  FaultTable::process().open_range(first, end);
}

void KernelStoreGuard::release() const { FaultTable::process().end_kernel_store(this, ticket_); }

}  // namespace pawl
