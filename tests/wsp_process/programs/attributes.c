// What a process and its threads have besides memory and descriptors: set, and found again.  Called
// with --list it names what it looks at.
#include <grp.h>
#include <linux/capability.h>

#include <linux/membarrier.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "kept.h"

enum { kNobody = 65534, kBits = 1 << 2 };  // SECBIT_NO_SETUID_FIXUP

static char stack[65536];
static void handle(int signal) { (void)signal; }

// Each sets its attribute, or checks it.
static void users(int sets) {
  if (sets) {
    const gid_t groups[] = {4, 5, 6};
    CHECK(setgroups(3, groups) == 0 && setresgid(kNobody, kNobody, kNobody) == 0);
    return;
  }
  gid_t groups[8];
  CHECK(getgroups(8, groups) == 3 && groups[1] == 5 && getegid() == kNobody && getuid() == 0);
}

static struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};

static void capabilities(int sets) {
  struct __user_cap_data_struct data[2];
  CHECK(syscall(SYS_capget, &header, data) == 0);
  if (sets) {
    data[0].inheritable = 1U << CAP_NET_RAW | 1U << CAP_KILL;
    data[0].effective &= ~(1U << CAP_SYS_PACCT);
    CHECK(syscall(SYS_capset, &header, data) == 0);
    return;
  }
  CHECK(data[0].inheritable == (1U << CAP_NET_RAW | 1U << CAP_KILL));
  CHECK((data[0].effective & 1U << CAP_SYS_PACCT) == 0);
  CHECK((data[0].permitted & 1U << CAP_SYS_PACCT) != 0);
}

static void bounding(int sets) {
  if (sets) CHECK(prctl(PR_CAPBSET_DROP, CAP_SYS_TIME) == 0);
  CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_TIME) == 0 && prctl(PR_CAPBSET_READ, CAP_KILL) == 1);
}

static void ambient(int sets) {
  if (sets) CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) == 0);
  CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0) == 1);
  CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_NET_RAW, 0, 0) == 0);
}

static void secure_bits(int sets) {
  if (sets) CHECK(prctl(PR_SET_SECUREBITS, kBits) == 0);
  CHECK(prctl(PR_GET_SECUREBITS) == kBits);
}

static void no_new_privileges(int sets) {
  if (sets) CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static void dumpable(int sets) {
  if (sets) CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
  CHECK(prctl(PR_GET_DUMPABLE) == 0);
}

static void death_signal(int sets) {
  int found = 0;
  if (sets) CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR2) == 0);
  CHECK(prctl(PR_GET_PDEATHSIG, &found) == 0 && found == SIGUSR2);
}

static void subreaper(int sets) {
  int found = 0;
  if (sets) CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  CHECK(prctl(PR_GET_CHILD_SUBREAPER, &found) == 0 && found == 1);
}

static void persona(int sets) {
  if (sets) CHECK(personality(STICKY_TIMEOUTS) != -1);
  CHECK(personality(0xffffffff) == STICKY_TIMEOUTS);
}

static void memory_score(int sets) {
  FILE* const file = fopen("/proc/self/oom_score_adj", sets ? "w" : "r");
  int score = 0;
  CHECK(file != NULL);
  if (sets) {
    CHECK(fprintf(file, "321") == 3);
  } else {
    CHECK(fscanf(file, "%d", &score) == 1 && score == 321);
  }
  CHECK(fclose(file) == 0);
}

static void mask(int sets) {
  if (sets) umask(0137);
  CHECK(umask(0137) == 0137);
}

static void limits(int sets) {
  struct rlimit limit = {1234567, 7654321};
  if (sets) CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == 1234567 &&
        limit.rlim_max == 7654321);
}

static void niceness(int sets) {
  if (sets) CHECK(setpriority(PRIO_PROCESS, 0, 7) == 0);
  errno = 0;
  CHECK(getpriority(PRIO_PROCESS, 0) == 7 && errno == 0);
}

static sem_t may_check;
static sem_t is_set;

// A thread with a policy and a processor of its own.
static void* be_another(void* argument) {
  const struct sched_param none = {0};
  cpu_set_t one;
  int first = 0;
  CHECK(sched_getaffinity(0, sizeof(one), &one) == 0);
  while (!CPU_ISSET(first, &one)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
  CHECK(prctl(PR_SET_NAME, "another") == 0);
  sem_post(&is_set);
  while (sem_wait(&may_check) != 0) continue;
  cpu_set_t found;
  CHECK(sched_getaffinity(0, sizeof(found), &found) == 0 && CPU_EQUAL(&found, &one));
  CHECK(sched_getscheduler(0) == SCHED_BATCH);
  char name[16];
  CHECK(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "another") == 0);
  return argument;
}

static pthread_t another;

static void scheduling(int sets) {
  if (sets) {
    CHECK(sem_init(&may_check, 0, 0) == 0 && sem_init(&is_set, 0, 0) == 0);
    CHECK(pthread_create(&another, NULL, be_another, NULL) == 0);
    CHECK(sem_wait(&is_set) == 0);
    return;
  }
  CHECK(sched_getscheduler(0) == SCHED_OTHER);
  sem_post(&may_check);
  CHECK(pthread_join(another, NULL) == 0);
}

static void alternate_stack(int sets) {
  stack_t wanted = {.ss_sp = stack, .ss_size = sizeof(stack)};
  stack_t found;
  if (sets) CHECK(sigaltstack(&wanted, NULL) == 0);
  CHECK(sigaltstack(NULL, &found) == 0 && found.ss_sp == stack && found.ss_size == sizeof(stack));
}

static void actions(int sets) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  if (sets) CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && signal(SIGUSR2, SIG_IGN) != SIG_ERR);
  CHECK(sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == handle);
}

static sigset_t signals;

static void block_signals(void) {
  sigemptyset(&signals);
  sigaddset(&signals, SIGRTMIN + 3);
  sigaddset(&signals, SIGRTMIN + 4);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
}

// More than fit into what a restore has made at once.
static void waiting_signals(int sets) {
  enum { kCount = 700 };
  if (sets) {
    for (int i = 0; i < kCount; ++i) {
      const union sigval value = {.sival_int = i};
      CHECK(sigqueue(getpid(), SIGRTMIN + 3, value) == 0);
      CHECK(pthread_sigqueue(pthread_self(), SIGRTMIN + 4, value) == 0);
    }
    // What waits goes on waiting, though no more may be sent.
    const struct rlimit none_more = {0, 0};
    CHECK(setrlimit(RLIMIT_SIGPENDING, &none_more) == 0);
    return;
  }
  const struct timespec none = {0, 0};
  for (int i = 0; i < 2 * kCount; ++i) {
    siginfo_t found;
    CHECK(sigtimedwait(&signals, &found, &none) == SIGRTMIN + (i < kCount ? 4 : 3));
    CHECK(found.si_value.sival_int == i % kCount);
  }
  CHECK(sigtimedwait(&signals, NULL, &none) == -1);
}

static void timers(int sets) {
  struct itimerval timer = {{1000, 0}, {5000, 0}};
  if (sets) CHECK(setitimer(ITIMER_VIRTUAL, &timer, NULL) == 0);
  CHECK(getitimer(ITIMER_VIRTUAL, &timer) == 0 && timer.it_interval.tv_sec == 1000);
  CHECK(timer.it_value.tv_sec > 4000 && timer.it_value.tv_sec <= 5000);
}

static void* robust;

static void robust_list(int sets) {
  void* found = NULL;
  size_t bytes = 0;
  CHECK(syscall(SYS_get_robust_list, 0, &found, &bytes) == 0 && found != NULL);
  if (sets) robust = found;
  CHECK(found == robust);
}

// What is registered cannot be registered again.
static void sequences(int sets) {
  (void)sets;
  static struct rseq other __attribute__((aligned(32)));
  CHECK(syscall(SYS_rseq, &other, sizeof(other), 0, 0x53053053) == -1);
}

static void barriers(int sets) {
  if (sets) CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0);
  CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

// Of which not every kernel, or processor, has all: then it is as it was.
static void write_execute(int sets) {
  enum { kSet = 65, kGet = 66 };  // PR_SET_MDWE
  static int is_known;
  if (sets) is_known = prctl(kSet, 1, 0, 0, 0) == 0;
  CHECK(!is_known || prctl(kGet, 0, 0, 0, 0) == 1);
}

static void huge_pages(int sets) {
  if (sets) CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
}

static void speculation(int sets) {
  enum { kKinds = 3 };
  static int found[kKinds];
  for (int i = 0; i < kKinds; ++i) {
    if (sets && (prctl(PR_GET_SPECULATION_CTRL, i, 0, 0, 0) & PR_SPEC_PRCTL) != 0)
      prctl(PR_SET_SPECULATION_CTRL, i, PR_SPEC_DISABLE, 0, 0);
    if (sets) found[i] = prctl(PR_GET_SPECULATION_CTRL, i, 0, 0, 0);
    CHECK(prctl(PR_GET_SPECULATION_CTRL, i, 0, 0, 0) == found[i]);
  }
}

static sem_t may_read;

// Of a thread of its own, which reads no clock then.
static void* be_without_time(void* argument) {
  int found = 0;
  CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
  sem_post(&is_set);
  while (sem_wait(&may_read) != 0) continue;
  CHECK(prctl(PR_GET_TSC, &found) == 0 && found == PR_TSC_SIGSEGV);
  return argument;
}

static pthread_t without_time;

static void time_stamps(int sets) {
  if (sets) {
    CHECK(sem_init(&may_read, 0, 0) == 0);
    CHECK(pthread_create(&without_time, NULL, be_without_time, NULL) == 0);
    CHECK(sem_wait(&is_set) == 0);
    return;
  }
  sem_post(&may_read);
  CHECK(pthread_join(without_time, NULL) == 0);
}

static void broken_memory(int sets) {
  if (sets) CHECK(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0) == 0);
  CHECK(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0) == PR_MCE_KILL_EARLY);
}

static const struct {
  const char* name;
  void (*look)(int sets);
} attributes[] = {
    // In an order in which each may still be set.
    {"limits", limits},
    {"oom_score_adj", memory_score},
    {"nice value", niceness},
    {"users and groups", users},
    {"capabilities", capabilities},
    {"ambient capabilities", ambient},
    {"bounding set", bounding},
    {"securebits", secure_bits},
    {"no_new_privs", no_new_privileges},
    {"dumpable", dumpable},
    {"signal at the parent's death", death_signal},
    {"child subreaper", subreaper},
    {"personality", persona},
    {"umask", mask},
    {"alternate signal stack", alternate_stack},
    {"signal actions", actions},
    {"waiting signals", waiting_signals},
    {"interval timers", timers},
    {"robust list", robust_list},
    {"restartable sequences", sequences},
    {"scheduling policy, processors, name of a thread", scheduling},
    {"membarrier registrations", barriers},
    {"memory that is never writable and executable (`PR_SET_MDWE`)", write_execute},
    {"switch of transparent huge pages (`PR_SET_THP_DISABLE`)", huge_pages},
    {"speculation of the processor (`PR_SET_SPECULATION_CTRL`)", speculation},
    {"access to the time stamp counter (`PR_SET_TSC`)", time_stamps},
    {"policy for broken memory (`PR_MCE_KILL`)", broken_memory},
};

int main(int count, char** words) {
  const size_t all = sizeof(attributes) / sizeof(attributes[0]);
  if (count > 1 && strcmp(words[1], "--list") == 0) {
    for (size_t i = 0; i < all; ++i) puts(attributes[i].name);
    return 0;
  }
  block_signals();  // in all threads
  for (size_t i = 0; i < all; ++i) attributes[i].look(1);
  tell("ready");
  wait_to_go_on();
  for (size_t i = 0; i < all; ++i) attributes[i].look(0);
  done();
}
