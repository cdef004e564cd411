// eventfd(2), where the kernel does not tell of what kind one is (before Linux 6.5).
#pragma once

#include <cstdint>

#include "medium/status.h"

namespace pawl::wsp {

// Whether it was made with EFD_SEMAPHORE, found out by use; its count is what it was behind that.
// Of a program that stands still: others that have the counter, too, may see one that it never had.
Result<bool> is_semaphore(int counter, std::uint64_t count);

}  // namespace pawl::wsp
