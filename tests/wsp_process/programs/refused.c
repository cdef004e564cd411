// Makes each system call that a kept program may not make, and says what it answered.
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char* name, long result) {
  printf("%s %d\n", name, result == -1 ? errno : 0);
}

#define TRY(call, ...) say(#call, syscall(SYS_##call, __VA_ARGS__))

int main(void) {
  int pair[2];
  TRY(fork, 0);
  TRY(vfork, 0);
  TRY(clone, 17L, 0L, 0L, 0L, 0L);
  const long thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
  const long more[] = {CLONE_FS, CLONE_FILES, CLONE_FS | CLONE_FILES | CLONE_UNTRACED,
                       CLONE_FS | CLONE_FILES | CLONE_NEWUTS, CLONE_FS | CLONE_FILES | CLONE_PIDFD};
  for (int i = 0; i < 5; ++i) {
    int unused;  // a stack is none: one that is made would not live
    say("clone(CLONE_THREAD)", syscall(SYS_clone, thread | more[i], 0L, &unused, 0L, 0L));
  }
  TRY(process_madvise, -1L, 0L, 0L, 4L, 0L);
  say("mseal", syscall(462, 0L, 0L, 0L));
  say("map_shadow_stack", syscall(453, 0L, 4096L, 0L));
  say("arch_prctl(ARCH_SHSTK_ENABLE)", syscall(SYS_arch_prctl, 0x5001L, 1L));
  say("arch_prctl(ARCH_REQ_XCOMP_PERM)", syscall(SYS_arch_prctl, 0x1023L, 18L));
  say("arch_prctl(ARCH_ENABLE_TAGGED_ADDR)", syscall(SYS_arch_prctl, 0x4002L, 6L));
  TRY(modify_ldt, 1L, 0L, 0L);
  say("prctl(PR_SCHED_CORE)", prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, 0, 0));
  say("prctl(PR_SET_SYSCALL_USER_DISPATCH)", prctl(59, 0, 0, 0, 0));
  TRY(io_uring_setup, 1L, 0L);
  TRY(io_setup, 1L, 0L);
  TRY(shmat, 0L, 0L, 0L);
  TRY(memfd_create, "x", 0L);
  TRY(memfd_secret, 0L);
  TRY(userfaultfd, 0L);
  TRY(remap_file_pages, 0L, 0L, 0L, 0L, 0L);
  TRY(pkey_alloc, 0L, 0L);
  say("madvise(MADV_GUARD_INSTALL)", madvise(NULL, 4096, 102));
  TRY(ioperm, 0x80L, 1L, 1L);
  TRY(iopl, 3L);
  TRY(ptrace, 0L, 0L, 0L, 0L);
  TRY(seccomp, 0L, 0L, 0L);
  say("prctl(PR_SET_SECCOMP)", prctl(PR_SET_SECCOMP, 1));
  TRY(unshare, (long)CLONE_NEWUTS);
  TRY(setns, 0L, 0L);
  TRY(chroot, "/");
  TRY(pivot_root, "/", "/");
  TRY(inotify_init, 0L);
  TRY(inotify_init1, 0L);
  TRY(fanotify_init, 0L, 0L);
  TRY(perf_event_open, 0L, 0L, 0L, 0L, 0L);
  TRY(bpf, 0L, 0L, 0L);
  TRY(mq_open, "/x", 0L, 0L, 0L);
  TRY(msgget, 0L, 0L);
  TRY(semget, 0L, 0L, 0L);
  TRY(socketpair, (long)AF_UNIX, (long)SOCK_STREAM, 0L, pair);
  say("setsockopt(SO_ATTACH_REUSEPORT_CBPF)",
      syscall(SYS_setsockopt, 0L, (long)SOL_SOCKET, (long)SO_ATTACH_REUSEPORT_CBPF, 0L, 0L));
  say("setsockopt(SO_ATTACH_REUSEPORT_EBPF)",
      syscall(SYS_setsockopt, 0L, (long)SOL_SOCKET, (long)SO_ATTACH_REUSEPORT_EBPF, 0L, 0L));
  say("setsockopt(TCP_MD5SIG)",
      syscall(SYS_setsockopt, 0L, (long)IPPROTO_TCP, (long)TCP_MD5SIG, 0L, 0L));
  say("setsockopt(TCP_MD5SIG)",
      syscall(SYS_setsockopt, 0L, (long)IPPROTO_TCP, (long)TCP_MD5SIG_EXT, 0L, 0L));
  say("setsockopt(TCP_AO_ADD_KEY)",
      syscall(SYS_setsockopt, 0L, (long)IPPROTO_TCP, (long)38, 0L, 0L));
  say("setsockopt(IP_XFRM_POLICY)",
      syscall(SYS_setsockopt, 0L, (long)IPPROTO_IP, (long)16, 0L, 0L));
  say("setsockopt(IP_XFRM_POLICY)",
      syscall(SYS_setsockopt, 0L, (long)IPPROTO_IP, (long)17, 0L, 0L));
  say("setsockopt(IPV6_XFRM_POLICY)",
      syscall(SYS_setsockopt, 0L, (long)IPPROTO_IPV6, (long)34, 0L, 0L));
  say("setsockopt(IPV6_XFRM_POLICY)",
      syscall(SYS_setsockopt, 0L, (long)IPPROTO_IPV6, (long)35, 0L, 0L));
  TRY(timer_create, 0L, 0L, 0L);
  TRY(add_key, 0L, 0L, 0L, 0L, 0L);
  TRY(request_key, 0L, 0L, 0L, 0L);
  TRY(keyctl, 0L, 0L, 0L, 0L, 0L);
  TRY(pidfd_open, (long)getpid(), 0L);
  TRY(landlock_restrict_self, 0L, 0L);
  // Mappings that cannot be kept.
  const long file = syscall(SYS_open, "/proc/self/exe", 0L);
  say("mmap(MAP_HUGETLB)",
      mmap(NULL, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED
          ? -1
          : 0);
  say("mmap(MAP_GROWSDOWN)",
      mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) == MAP_FAILED
          ? -1
          : 0);
  say("mmap(MAP_SHARED)",
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0) == MAP_FAILED ? -1 : 0);
  return 0;
}
