// What the program has of the allocator now, as far as that is known: under the address sanitizer.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAWL_KNOWS_ITS_MEMORY
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define PAWL_KNOWS_ITS_MEMORY
#endif

#ifdef PAWL_KNOWS_ITS_MEMORY
#include <sanitizer/allocator_interface.h>
#endif

namespace pawl::fuzz {

inline std::size_t memory_in_use() {
#ifdef PAWL_KNOWS_ITS_MEMORY
  return __sanitizer_get_current_allocated_bytes();
#else
  return 0;
#endif
}

}  // namespace pawl::fuzz
