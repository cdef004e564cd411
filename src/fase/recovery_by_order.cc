#include "fase/recovery_by_order.h"

#include <unistd.h>
#include <cstdint>
#include <cstdio>

#include "medium/environment.h"
#include "pawl/fase.h"

namespace pawl::fase {

void recover_by_order() {
  const char* const path = environment_variable(kRecoverVariable);
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
  const std::uint64_t finished = counted ? statistics.sections_recovered : 0;
  std::printf("%s: recovered, %llu section%s finished\n", path,
              static_cast<unsigned long long>(finished), finished == 1 ? "" : "s");
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace pawl::fase
