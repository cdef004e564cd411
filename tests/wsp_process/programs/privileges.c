// A program that gave up being root but kept some capabilities has them again.
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "kept.h"

enum { kNobody = 65534 };

static pthread_t thread;
static atomic_int acts_for_another;

static void* act_for_another(void* argument) {
  // As the kernel has it, of this thread alone; the library's functions are of all.
  const gid_t groups[] = {5, 7};
  if (getenv("KEPT_OWN_USER") != NULL)
    CHECK(syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0);
  if (getenv("KEPT_MORE_GROUPS") != NULL) CHECK(syscall(SYS_setgroups, 2, groups) == 0);
  if (getenv("KEPT_OTHER_GROUP") != NULL) CHECK(syscall(SYS_setgroups, 1, groups + 1) == 0);
  if (getenv("KEPT_FEWER_GROUPS") != NULL) CHECK(syscall(SYS_setgroups, 0, NULL) == 0);
  acts_for_another = 1;
  for (;;) pause();
  return argument;
}

int main(void) {
  // One whose thread acts for another: it would have the first one's privileges behind a restore.
  if (getenv("KEPT_OWN_USER") != NULL || getenv("KEPT_MORE_GROUPS") != NULL ||
      getenv("KEPT_OTHER_GROUP") != NULL || getenv("KEPT_FEWER_GROUPS") != NULL) {
    CHECK(pthread_create(&thread, NULL, act_for_another, NULL) == 0);
    while (!acts_for_another) usleep(100);
    tell("ready");
    for (;;) pause();
  }
  if (getenv("KEPT_HIDDEN") != NULL) {
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
    tell("ready");
    for (;;) pause();
  }
  if (getenv("KEPT_NO_GROUPS") != NULL) {
    CHECK(setgroups(0, NULL) == 0);
    tell("ready");
    wait_to_go_on();
    CHECK(getgroups(0, NULL) == 0);
    done();
  }
  CHECK(prctl(PR_SET_KEEPCAPS, 1) == 0);
  CHECK(setresgid(kNobody, kNobody, kNobody) == 0);
  CHECK(setresuid(kNobody, kNobody, kNobody) == 0);
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __u32 some = 1U << CAP_DAC_OVERRIDE | 1U << CAP_NET_BIND_SERVICE;
  struct __user_cap_data_struct data[2] = {{some, some, 0}};
  CHECK(syscall(SYS_capset, &header, data) == 0);
  tell("ready");
  wait_to_go_on();
  CHECK(getuid() == kNobody && getegid() == kNobody);
  memset(data, 0, sizeof(data));
  CHECK(syscall(SYS_capget, &header, data) == 0);
  CHECK(data[0].effective == some && data[0].permitted == some && data[0].inheritable == 0);
  CHECK(setresuid(0, 0, 0) != 0);
  done();
}
