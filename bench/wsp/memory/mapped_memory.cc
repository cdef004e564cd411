// Flush on fail without a log: a shared mapping of non-volatile memory, and nothing else.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>

#include "memory/memory.h"

namespace pawl::bench::wsp {
namespace {

void* the_memory = nullptr;
std::size_t the_bytes = 0;

[[noreturn]] void give_up(const char* path) {
  std::perror(path);
  std::exit(EXIT_FAILURE);
}

}  // namespace

void* open_memory(const char* path, std::size_t bytes) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || ::posix_fallocate(file, 0, static_cast<off_t>(bytes)) != 0) give_up(path);
  the_memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (the_memory == MAP_FAILED) give_up(path);
  ::close(file);
  the_bytes = bytes;
  return the_memory;
}

void close_memory() { ::munmap(the_memory, the_bytes); }
void commit_memory() {}
MemoryCounts count_memory() { return {}; }

}  // namespace pawl::bench::wsp
