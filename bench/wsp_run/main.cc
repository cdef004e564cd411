// What is saved in bench_wsp_run.py: so many MiB of memory, all of it in use, and so many threads,
// half of them computing and half of them waiting.
//
//   bench_wsp_run MIB THREADS READY_FILE
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kMebibyte = 1 << 20;

void* be_a_thread(void* computes) {
  for (unsigned long turns = 0;; ++turns) {
    if (computes == nullptr) ::pause();
    asm volatile("" : "+r"(turns));         // a computation that no compiler leaves out
    if (turns % 1000 == 0) ::usleep(1000);  // the others get their turn
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10) * kMebibyte;
  const long threads = std::atol(argv[2]);
  auto* const memory = static_cast<char*>(std::malloc(bytes));
  if (memory == nullptr) return 1;
  std::memset(memory, 0x5a, bytes);
  static char yes = 0;
  for (long i = 1; i < threads; ++i) {
    pthread_t thread{};
    if (::pthread_create(&thread, nullptr, be_a_thread, i % 2 != 0 ? &yes : nullptr) != 0) return 1;
  }
  std::FILE* const file = std::fopen(argv[3], "w");
  if (file == nullptr || std::fclose(file) != 0) return 1;
  for (;;) ::pause();
}
