#include "fase/recovery_by_order.h"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>

#include "pawl/fase.h"

namespace pawl::fase {

void recover_by_order() {
  const char* const path = std::getenv(kRecoverVariable);
  if (path == nullptr || *path == '\0') return;
  pawl_fase* const fase = ::pawl_fase_open(path, nullptr);
  if (fase == nullptr) {
    std::fprintf(stderr, "pawl: %s\n", ::pawl_last_error());
    ::_exit(1);
  }
  struct pawl_fase_statistics statistics;
  const bool counted = ::pawl_fase_stats(fase, &statistics) == 0;
  if (::pawl_fase_close(fase) != 0) {
    std::fprintf(stderr, "pawl: %s\n", ::pawl_last_error());
    ::_exit(1);
  }
  std::printf("%s: recovered, %llu sections finished\n", path,
              counted ? static_cast<unsigned long long>(statistics.sections_recovered) : 0);
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace pawl::fase
