/* To be preloaded: once the file KILL_WHEN is there, the process is killed at the KILL_AT-th
 * release of a lock that a section has. */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pawl_fase_function;
typedef int unlock_function(void*, const struct pawl_fase_function*, uint32_t, const void*);

int pawl_fase_mutex_unlock(void* mutex, const struct pawl_fase_function* function, uint32_t region,
                           const void* live_ins) {
  static atomic_int released;
  if (access(getenv("KILL_WHEN"), F_OK) == 0 &&
      atomic_fetch_add(&released, 1) + 1 == atoi(getenv("KILL_AT"))) {
    raise(SIGKILL);
  }
  /* ISO C has no conversion from dlsym's result. */
  unlock_function* next = NULL;
  void* const found = dlsym(RTLD_NEXT, "pawl_fase_mutex_unlock");
  if (found == NULL) abort();
  memcpy(&next, &found, sizeof next);
  return next(mutex, function, region, live_ins);
}
