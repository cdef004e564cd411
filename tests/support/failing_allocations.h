// Memory that runs out: the program's operator new, of which the n-th call fails, alone or with all
// behind it.  For one source of a program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Of this thread: how many it made since counting began, and which of them fails.
thread_local long allocations = 0;
thread_local long failing = -1;
thread_local bool all_after_fail = false;

void* allocate(std::size_t size, std::size_t alignment) {
  const long number = allocations++;
  if (number == failing || (all_after_fail && failing >= 0 && number > failing))
    throw std::bad_alloc();
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment;
  void* const memory = std::aligned_alloc(alignment, rounded * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Not inline: the compiler would take it for the release of what another operator new made.
[[gnu::noinline]] void release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return operator new(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
