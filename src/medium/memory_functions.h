// libc's calls on memory, for Pawl's own use: past the wrappers of the same names, by which a
// program's calls on the memory of a mapping reach Pawl (mapping/memory_calls.h).  Pawl makes them
// with its locks held, and means the kernel.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct iovec;  // NOLINT(readability-identifier-naming): the C library's

namespace pawl::memory {

// Each returns what the libc function of that name returns, and sets errno.
void* map(void* address, std::size_t length, int protection, int flags, int descriptor,
          off_t offset);
int unmap(void* address, std::size_t length);
int protect(void* address, std::size_t length, int protection);
int protect_with_key(void* address, std::size_t length, int protection, int key);
int advise(void* address, std::size_t length, int advice);
ssize_t advise_process(int process, const iovec* vectors, std::size_t count, int advice,
                       unsigned flags);
int synchronise(void* address, std::size_t length, int flags);
void* remap(void* address, std::size_t length, std::size_t new_length, int flags,
            void* new_address);
void* attach_shared(int id, const void* address, int flags);
int lock(const void* address, std::size_t length, unsigned flags);  // mlock2
int lock_all(int flags);
// Whether lock_all() was ever called: what is mapped from then on may be locked as well.
bool locks_all();

// While one lives, unmap() in this thread leaves the memory of the range where it is: it is about
// to be mapped over in one step, without a moment in which another thread could be given the
// addresses.  One within another has its whole range.
class Spared {
 public:
  Spared(const void* address, std::size_t length);
  ~Spared();
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;

 private:
  const std::uintptr_t low_before_;
  const std::uintptr_t high_before_;
};

// Addresses that a window leaves.  They stay taken, without access, as long as this lives: whoever
// finds windows by their addresses learns first that this one is there no more, or another thread's
// window at the same addresses would be taken for it.
class LeftPlace {
 public:
  LeftPlace() = default;
  ~LeftPlace();
  LeftPlace(const LeftPlace&) = delete;
  LeftPlace& operator=(const LeftPlace&) = delete;

  // Once.
  void take(void* address, std::size_t length);

 private:
  void* address_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace pawl::memory
