/* watched_program WHAT FILE [FILE2]: does one thing to a mapped file, for `pawl doctor -- COMMAND`
 * to see.
 *
 * What it does is what its name says, and nothing else that Pawl minds.  After a WHAT that needs no
 * failure of its own it stores, synchronises and exits with 0, with the preload face and without
 * it, as far as the face allows it: what the face refuses ends it with 3. */
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kPages = 4, kLength = kPage * kPages, kRefused = 3 };

static const char* what;

static void refuse(const char* call) {
  fprintf(stderr, "%s: %s: %s\n", what, call, strerror(errno));
  exit(kRefused);
}

static int open_file(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, kLength) != 0) refuse("open");
  return file;
}

static char* map_file(int file) {
  char* const memory = mmap(NULL, kLength, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) refuse("mmap");
  return memory;
}

static void commit(char* memory) {
  memory[0] += 1;
  memory[kPage] += 1;
  if (msync(memory, kLength, MS_SYNC) != 0) refuse("msync");
}

static void let_go(char* memory, int file) {
  if (munmap(memory, kLength) != 0 || close(file) != 0) refuse("munmap");
}

/* Waits for a child, which says how it fared. */
static void join(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) refuse("fork");
  if (status != 0) exit(WIFEXITED(status) ? WEXITSTATUS(status) : kRefused);
}

static void* commit_in_thread(void* memory) {
  commit(memory);
  return NULL;
}

/* The whole life of a mapping, with one thing in its middle. */
static void with_mapping(const char* path,
                         void (*middle)(int file, char* memory, const char* path)) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  commit(memory);
  middle(file, memory, path);
  commit(memory);
  let_go(memory, file);
}

static void nothing(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  (void)path;
}

static void raw_sync(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  if (syscall(SYS_msync, memory, kLength, MS_SYNC) != 0) refuse("syscall");
}

static void sync_in_a_namespace(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  void* library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
  if (library == NULL) refuse("dlmopen");
  int (*synchronise)(void*, size_t, int);
  *(void**)&synchronise = dlsym(library, "msync");
  if (synchronise(memory, kLength, MS_SYNC) != 0) refuse("msync of the namespace");
}

static void child_commits(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  const pid_t child = fork();
  if (child == 0) {
    commit(memory);
    _exit(0);
  }
  join(child);
}

static void child_waits(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  const pid_t child = fork();
  if (child == 0) _exit(memory[0] == memory[kPage] ? 0 : 1);
  join(child);
}

static void child_unmaps(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  const pid_t child = fork();
  if (child == 0) {
    memory[0] = 'c';
    munmap(memory, kLength);
    _exit(0);
  }
  join(child);
}

static void child_leaves_session(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    _exit(memory[0] == memory[kPage] ? 0 : 1);
  }
  join(child);
}

/* As another program, which inherits neither mapping nor descriptor. */
static void run_self(const char* other, const char* path) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "watched_program", other, path, (char*)NULL);
    _exit(127);
  }
  join(child);
}

static void other_maps(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  run_self("good", path);
}

static void other_writes(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  run_self("write", path);
}

static void other_reads(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  run_self("read", path);
}

static void stream(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  FILE* const stream = fopen(path, "r");
  if (stream == NULL) refuse("fopen");
  fclose(stream);
}

static void dup_beneath_stream(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  FILE* const stream = fopen("/dev/null", "r");
  if (stream == NULL || dup2(file, fileno(stream)) < 0) refuse("dup2");
  fclose(stream);
}

static void dup_beneath_output(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  const int output = dup(STDOUT_FILENO);
  if (dup2(file, STDOUT_FILENO) < 0) refuse("dup2");
  if (dup2(output, STDOUT_FILENO) < 0) refuse("dup2");
  close(output);
}

static void unshare_user(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  memory[0] += 1;
  if (msync(memory, kLength, MS_ASYNC) != 0) refuse("msync"); /* by a thread, with Pawl */
  if (unshare(CLONE_NEWUSER) != 0) refuse("unshare");
}

static void stream_writes(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  FILE* const stream = fdopen(dup(file), "w");
  if (stream == NULL) refuse("fdopen");
  fputs("text", stream);
  fclose(stream);
}

enum { kRounds = 20 };

static void must_fail(const char* call, int has_failed) {
  if (has_failed) return;
  fprintf(stderr, "%s: %s did not fail\n", what, call);
  exit(1);
}

/* As Chronicle Queue's sync(), which takes any address. */
static void synchronise_in_vain(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  for (int round = 0; round < kRounds; ++round) {
    memory[100] += 1;
    must_fail("msync", msync(memory + 96, kPage, MS_SYNC) != 0 && errno == EINVAL);
    must_fail("msync", msync(memory, kPage, MS_SYNC | MS_ASYNC) != 0 && errno == EINVAL);
  }
}

/* Calls that the kernel refuses change nothing, wherever they are seen. */
static void calls_in_vain(int file, char* memory, const char* path) {
  must_fail("ftruncate", ftruncate(file, -1) != 0);
  must_fail("fallocate", fallocate(file, 0, -1, kPage) != 0);
  must_fail("pwrite", pwrite(file, "text", 4, -1) < 0);
  must_fail("rename", rename(path, "/no/such/directory") != 0);
  must_fail("munmap", munmap(memory + 96, kPage) != 0);
  must_fail("mremap", mremap(memory, kPage, 0, 0) == MAP_FAILED);
  must_fail("mmap", mmap(memory, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, -1, 0) == MAP_FAILED);
  must_fail("sync_file_range", sync_file_range(file, 0, kPage, 0x100) != 0);
  run_self("renames_in_vain", path);
}

static void rename_in_vain(const char* path) {
  must_fail("rename", rename(path, "/no/such/directory") != 0);
}

static void two_mappings(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  char* const second = map_file(file);
  commit(second);
  if (munmap(second, kLength) != 0) refuse("munmap");
}

static int commit_and_exit(void* memory) {
  commit(memory);
  return 0;
}

/* As LeakSanitizer does: with a process that shares the memory and refuses to be traced. */
static void untraced(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  static char stack[64 * 1024] __attribute__((aligned(16)));
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_THREAD | CLONE_SIGHAND |
                    CLONE_UNTRACED | CLONE_CHILD_CLEARTID;
  static volatile int thread = 1;
  if (clone(commit_and_exit, stack + sizeof(stack), flags, memory, NULL, NULL, (pid_t*)&thread) < 0)
    refuse("clone");
  while (thread != 0) usleep(1000);
}

static void* wait_for_ever(void* argument) {
  for (;;) pause();
  return argument;
}

/* As one that tries, and then goes another way; it has a second thread, which does nothing. */
static void try_again_and_again(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  pthread_t thread;
  struct timespec begin;
  struct timespec end;
  if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) refuse("pthread_create");
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < 60; ++i) {
    void* const second = mmap(NULL, kLength, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (second != MAP_FAILED) exit(1);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (end.tv_sec - begin.tv_sec > 3) exit(4);
}

static void uring(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  (void)path;
  char parameters[120] = {0};
  const long ring = syscall(SYS_io_uring_setup, 4, parameters); /* may be refused: asked is asked */
  if (ring >= 0) close((int)ring);
}

static void pinned_buffers(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  const struct iovec buffer = {memory, kPage};
  const int not_a_ring = -1; /* asked is asked */
  syscall(SYS_io_uring_register, not_a_ring, 0 /* IORING_REGISTER_BUFFERS */, &buffer, 1);
}

static void posix_aio(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  struct aiocb request = {.aio_fildes = file, .aio_buf = "text", .aio_nbytes = 4};
  if (aio_write(&request) != 0) refuse("aio_write");
  const struct aiocb* list[] = {&request};
  while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, NULL);
}

static void fixed_over_part(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  if (mmap(memory + kPage * 2, kPage, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    refuse("mmap");
  }
}

static void collapse(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  if (fallocate(file, FALLOC_FL_COLLAPSE_RANGE, kPage, kPage) != 0) refuse("fallocate");
  if (ftruncate(file, kLength) != 0) refuse("ftruncate");
}

static void clone_file(int file, char* memory, const char* path) {
  (void)memory;
  char name[4096];
  snprintf(name, sizeof(name), "%s.clone", path);
  const int target = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const int outcome = ioctl(target, FICLONE, file);
  const int error = errno;
  unlink(name);
  close(target);
  errno = error;
  if (outcome != 0) refuse("ioctl");
}

static void two_names(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  char name[4096];
  snprintf(name, sizeof(name), "%s.name", path);
  if (link(path, name) != 0) refuse("link");
  if (unlink(name) != 0) refuse("unlink");
}

static void pass_on(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) refuse("socketpair");
  char control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec bytes = {"x", 1};
  struct msghdr message = {.msg_iov = &bytes,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof(control)};
  struct cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(part), &file, sizeof(file));
  if (sendmsg(ends[0], &message, 0) != 1) refuse("sendmsg");
  close(ends[0]);
  close(ends[1]);
}

static void remap_part(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  if (mremap(memory, kPage * 2, kPage, 0) == MAP_FAILED) refuse("mremap");
  exit(0);
}

static void file_pages(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  if (remap_file_pages(memory, kPage, 0, 0, 0) != 0) refuse("remap_file_pages");
}

static void threads(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  pthread_t threads[4];
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, commit_in_thread, memory);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  }
}

struct Unmapping {
  char* memory;
  int after_ms;
};

static void* unmap_later(void* argument) {
  const struct Unmapping* const unmapping = argument;
  usleep((useconds_t)unmapping->after_ms * 1000);
  if (munmap(unmapping->memory, kLength) != 0) refuse("munmap");
  return NULL;
}

/* As where garbage is collected: the first mapping goes when the second one is wanted already. */
static void map_again(const char* path, int after_ms) {
  const int file = open_file(path);
  struct Unmapping unmapping = {map_file(file), after_ms};
  commit(unmapping.memory);
  pthread_t thread;
  if (pthread_create(&thread, NULL, unmap_later, &unmapping) != 0) refuse("pthread_create");
  char* const second = map_file(file);
  pthread_join(thread, NULL);
  commit(second);
  let_go(second, file);
}

/* A sandbox that kills for one system call, or refuses it. */
static void forbid(int number, unsigned action) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    refuse("prctl");
  }
}

static void sandbox(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  (void)path;
  forbid(SYS_fdatasync, SECCOMP_RET_KILL_PROCESS);
}

static void sandbox_refuses(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  (void)path;
  forbid(SYS_fallocate, SECCOMP_RET_ERRNO | EPERM);
}

static void sandbox_of_others(int file, char* memory, const char* path) {
  (void)file;
  (void)memory;
  (void)path;
  forbid(SYS_socket, SECCOMP_RET_KILL_PROCESS);
}

static void die(int file, char* memory, const char* path) {
  (void)file;
  (void)path;
  memory[0] = 100; /* not committed */
  raise(SIGKILL);
}

static void grow(int file, char* memory, const char* path) {
  (void)path;
  if (ftruncate(file, kLength * 2) != 0) refuse("ftruncate");
  char* const grown = mremap(memory, kLength, kLength * 2, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) refuse("mremap");
  if (pwrite(file, "text", 4, kLength) != 4 || fdatasync(file) != 0) refuse("pwrite");
  if (munmap(grown, kLength * 2) != 0 || close(file) != 0) refuse("munmap");
  exit(0);
}

static void store_only(const char* path) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  memory[0] = 1;
  if (strcmp(what, "later_only") == 0 && msync(memory, kLength, MS_ASYNC) != 0) refuse("msync");
  if (strcmp(what, "sync_only") == 0) sync();
  if (strcmp(what, "hint_only") == 0 && sync_file_range(file, 0, kLength, 7) != 0) refuse("hint");
  let_go(memory, file);
}

/* As pybloomfiltermmap3: one durable call when the file is made, and none after that.  As LMDB with
 * MDB_MAPASYNC and mdb_env_sync(): one at the end of each change. */
static void acknowledge_later(const char* path, int commits) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  commit(memory);
  for (int i = 0; i < 32; ++i) {
    memory[0] += 1;
    if (msync(memory, kLength, MS_ASYNC) != 0) refuse("msync");
    if (commits && i % 2 == 1) commit(memory);
  }
  let_go(memory, file);
}

/* As lmdb of Node.js: the ranges end before the last page. */
static void leave_out_the_last_page(const char* path) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  for (int i = 0; i < 64; ++i) {
    memory[kLength - 1] += 1;
    memory[kPage] += 1;
    if (msync(memory, kLength - kPage, MS_SYNC) != 0) refuse("msync");
    memory[0] += 1;
    if (msync(memory, kPage, MS_SYNC) != 0) refuse("msync");
  }
  let_go(memory, file);
}

/* All of them in turn, and none is left out. */
static void synchronise_page_by_page(const char* path) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  for (int i = 0; i < 64; ++i) {
    for (int page = 0; page < kPages; ++page) memory[page * kPage] += 1;
    for (int page = 0; page < kPages; ++page) {
      if (msync(memory + page * kPage, kPage, MS_SYNC) != 0) refuse("msync");
    }
  }
  let_go(memory, file);
}

static char* map_for_reading(int file) {
  char* const memory = mmap(NULL, kLength, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) refuse("mmap");
  return memory;
}

static void change_by_call(int file, int round) {
  if (pwrite(file, &round, sizeof(round), round % kPages * kPage) != sizeof(round))
    refuse("pwrite");
}

/* As SQLite with mmap_size and synchronous=OFF: a log, then the file, which is synchronised once.
 */
static void write_beside(const char* path, const char* ending, int synchronises) {
  char name[4096];
  snprintf(name, sizeof(name), "%s%s", path, ending);
  const int file = open_file(path);
  char* const memory = map_for_reading(file);
  change_by_call(file, 0);
  if (fsync(file) != 0) refuse("fsync");
  const int log = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  for (int round = 0; round < kRounds; ++round) {
    change_by_call(log, round);
    change_by_call(file, round);
    if (synchronises && fdatasync(file) != 0) refuse("fdatasync");
  }
  close(log);
  let_go(memory, file);
}

/* The same with stores, which are synchronised. */
static void store_beside(const char* path) {
  char name[4096];
  snprintf(name, sizeof(name), "%s-wal", path);
  const int file = open_file(path);
  char* const memory = map_file(file);
  const int log = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  for (int round = 0; round < kRounds; ++round) {
    change_by_call(log, round);
    commit(memory);
  }
  close(log);
  let_go(memory, file);
}

/* A range that goes past the mapping's end: msync() synchronises what is there, and says ENOMEM. */
static void synchronise_past_the_end(const char* path) {
  const int file = open_file(path);
  char* const space =
      mmap(NULL, 2 * kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* const memory =
      mmap(space, kLength, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (memory == MAP_FAILED || munmap(space + kLength, kLength) != 0) refuse("mmap");
  for (int round = 0; round < 2; ++round) {
    memory[0] += 1;
    must_fail("msync", msync(memory, 2 * kLength, MS_SYNC) != 0 && errno == ENOMEM);
  }
  let_go(memory, file);
}

/* As Chronicle Map: while it is being made the file is synchronised, and not when it is ready. */
static void make_and_then_store(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const struct flock locked = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  const struct flock unlocked = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  if (file < 0 || fcntl(file, F_SETLK, &locked) != 0) refuse("open");
  if (pwrite(file, "made", 4, 0) != 4 || ftruncate(file, kLength) != 0) refuse("pwrite");
  char* const memory = map_file(file);
  if (msync(memory, kLength, MS_SYNC) != 0) refuse("msync");
  if (pwrite(file, "done", 4, 0) != 4 || fcntl(file, F_SETLK, &unlocked) != 0) refuse("pwrite");
  for (int round = 0; round < kRounds; ++round) memory[kPage] += 1;
}

/* Maps, does `before`, synchronises `times`, waits, does `after`, and lets go. */
static void around_synchronising(const char* path, int before_ms, int times, int after_ms,
                                 int stores_after) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  memory[0] += memory[kPage * 2];
  usleep((useconds_t)before_ms * 1000);
  for (int i = 0; i < times; ++i) {
    memory[0] += 1;
    if (msync(memory, kPage, MS_SYNC) != 0) refuse("msync");
  }
  usleep((useconds_t)after_ms * 1000);
  if (stores_after) memory[kPage] += 1;
  if (strcmp(what, "syncs_first_and_dies") == 0) raise(SIGTERM);
  if (strcmp(what, "syncs_first_and_exits") == 0) exit(0);
  let_go(memory, file);
}

/* Comes to a descriptor by a stream, and maps that while the stream is there. */
static void map_a_stream(const char* path) {
  FILE* stream = NULL;
  close(open_file(path));
  if (strcmp(what, "fdopen") == 0) stream = fdopen(open_file(path), "r+");
  if (strcmp(what, "fopen") == 0) stream = fopen(path, "r+");
  if (strcmp(what, "freopen") == 0) stream = freopen(path, "r+", fopen("/dev/null", "r"));
  if (stream == NULL) refuse(what);
  char* const memory = map_file(fileno(stream));
  commit(memory);
  commit(memory);
  if (munmap(memory, kLength) != 0 || fclose(stream) != 0) refuse("munmap");
}

static void fdopen_mapped(int file, char* memory, const char* path) {
  (void)memory;
  (void)path;
  FILE* const stream = fdopen(dup(file), "r");
  if (stream == NULL) refuse("fdopen");
  fclose(stream);
}

/* A descriptor that was a stream's once. */
static void map_after_a_stream(const char* path) {
  const int file = open_file(path);
  FILE* const stream = fdopen(dup(file), "r+");
  if (stream == NULL || fclose(stream) != 0) refuse("fdopen");
  if (fcntl(file, F_GETFL) < 0) refuse("fcntl");
  char* const memory = map_file(file);
  commit(memory);
  commit(memory);
  let_go(memory, file);
}

/* As libtorrent: what it needs to go on stands elsewhere, and under other names. */
static void write_elsewhere(const char* path, const char* other) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  memory[0] = 1;
  if (strcmp(what, "writes_elsewhere_and_syncs") == 0) {
    commit(memory);
    commit(memory);
  }
  char name[4096];
  for (int i = 0; i < kRounds; ++i) {
    snprintf(name, sizeof(name), "%s.%d", other, i);
    const int written = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (written < 0 || write(written, "text", 4) != 4) refuse("write");
    close(written);
    if (i >= kRounds / 2) unlink(name);
  }
  snprintf(name, sizeof(name), "%s.0", other);
  if (rename(name, other) != 0) refuse("rename");
  let_go(memory, file);
}

/* As LLVM: files with made-up names, one after the other, which get the same number. */
static void make_temporaries(const char* path) {
  const char* const endings[] = {"78acb0f", "12ef56a", "fb6d024"};
  for (int i = 0; i < 3; ++i) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.tmp%s", path, endings[i]);
    const int file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 || ftruncate(file, kLength) != 0) refuse("open");
    char* const memory = map_file(file);
    commit(memory);
    let_go(memory, file);
    if (unlink(name) != 0) refuse("unlink");
  }
}

static void make_before(const char* path) {
  const int made = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (made < 0 || ftruncate(made, kLength) != 0 || close(made) != 0) refuse("open");
  const int file = open_file(path);
  char* const memory = map_file(file);
  commit(memory);
  let_go(memory, file);
}

/* The directory is made up where its name ends with XXXXXX. */
static void map_in_new_directory(char* directory) {
  const size_t length = strlen(directory);
  const int is_made_up = length > 6 && strcmp(directory + length - 6, "XXXXXX") == 0;
  if (is_made_up ? mkdtemp(directory) == NULL : mkdir(directory, 0700) != 0) refuse("mkdir");
  char name[4096];
  snprintf(name, sizeof(name), "%s/idx", directory);
  make_before(name);
}

/* As libpmem: asks for what no file system here has, and goes on without. */
static void ask_for_map_sync(const char* path) {
  const int file = open_file(path);
  for (int round = 0; round < 3; ++round) {
    must_fail("mmap", mmap(NULL, kLength, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC,
                           file, 0) == MAP_FAILED);
    char* const memory = map_file(file);
    commit(memory);
    if (munmap(memory, kLength) != 0) refuse("munmap");
  }
}

/* As rrdtool: one change a mapping. */
static void in_rounds(const char* path) {
  for (int round = 0; round < 3; ++round) {
    const int file = open_file(path);
    char* const memory = map_file(file);
    commit(memory);
    let_go(memory, file);
  }
}

/* Gives up its lock on a file that is half made, which commits it. */
static void unlock_and_map_again(const char* path) {
  const int file = open_file(path);
  char* memory = map_file(file);
  memory[0] = 1;
  if (flock(file, LOCK_EX) != 0 || munmap(memory, kLength) != 0 || flock(file, LOCK_UN) != 0)
    refuse("flock");
  memory = map_file(file);
  memory[0] = 2;
  let_go(memory, file);
}

/* FILE.p, which Pawl refuses, and then FILE. */
static void with_refused_neighbour(const char* path) {
  char name[4096];
  snprintf(name, sizeof(name), "%s.p", path);
  with_mapping(name, two_mappings);
  with_mapping(path, nothing);
}

static void read_only(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  char* const memory = map_for_reading(file);
  if (memory[0] != memory[kPage]) exit(1);
  let_go(memory, file);
}

/* Maps for reading, and stores all the same. */
static void protect_later(const char* path) {
  const int file = open_file(path);
  char* const memory = map_for_reading(file);
  if (mprotect(memory, kLength, PROT_READ | PROT_WRITE) != 0) refuse("mprotect");
  for (int round = 0; round < 2; ++round) {
    memory[0] += 1;
    if (fsync(file) != 0) refuse("fsync");
  }
  let_go(memory, file);
}

/* FILE, and a second one that processes share, and that nobody synchronises. */
static void with_shared_state(const char* path, const char* other) {
  const int state = open_file(other);
  char* const memory = map_file(state);
  memory[0] = 1;
  with_mapping(path, nothing);
  let_go(memory, state);
}

/* As pawl/pawl.h has it; only the preload face knows it. */
static void ask_for_pawl(const char* path) {
  const int map_atomic = 0x03 | 0x1000000;
  const int file = open_file(path);
  char* const memory = mmap(NULL, kLength, PROT_READ | PROT_WRITE, map_atomic, file, 0);
  if (memory == MAP_FAILED) refuse("mmap");
  commit(memory);
  let_go(memory, file);
}

static void both(const char* path, const char* other) {
  const int one = open_file(path);
  const int two = open_file(other);
  char* const first = map_file(one);
  char* const second = map_file(two);
  for (int i = 0; i < 3; ++i) {
    commit(first);
    commit(second);
  }
  let_go(first, one);
  let_go(second, two);
}

/* FILE is synchronised when it is opened and when it is closed, the other one at each step. */
static void synchronise_apart(const char* path, const char* other) {
  const int stores = strcmp(what, "apart") == 0;
  const int data = open_file(path);
  const int index = open_file(other);
  char* const records = map_file(data);
  char* const count = map_file(index);
  commit(records);
  for (int round = 0; round < kRounds; ++round) {
    if (stores) records[2 * kPage] += 1;
    commit(count);
  }
  commit(records);
  let_go(records, data);
  let_go(count, index);
}

/* FILE, FILE.1 and FILE.2 belong together, and so they are synchronised. */
static void three_together(const char* path) {
  int files[3];
  char* memory[3];
  for (int i = 0; i < 3; ++i) {
    char name[4096];
    snprintf(name, sizeof(name), i == 0 ? "%s" : "%s.%d", path, i);
    files[i] = open_file(name);
    memory[i] = map_file(files[i]);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 3; ++i) memory[i][2 * kPage] += 1;
    for (int i = 0; i < 3; ++i) commit(memory[i]);
  }
  for (int i = 0; i < 3; ++i) let_go(memory[i], files[i]);
}

/* A catalogue says what FILE has, and is replaced at each step. */
static void with_catalogue(const char* path, const char* other) {
  const int every = strcmp(what, "catalogue_ordered") == 0   ? 1
                    : strcmp(what, "catalogue_at_last") == 0 ? kRounds
                                                             : 5;
  const int is_late = strcmp(what, "catalogue_late") == 0;
  const int maps_each_time = strcmp(what, "catalogue_of_windows") == 0;
  const int file = open_file(path);
  char* memory = map_file(file);
  char name[4096];
  snprintf(name, sizeof(name), "%s.new", other);
  const int many_before = 2000;
  const int before = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  for (int i = 0; is_late && i < many_before; ++i) change_by_call(before, i);
  close(before);
  for (int round = 1; round <= kRounds * (is_late ? 10 : 1); ++round) {
    memory[kPage] += 1;
    if (maps_each_time && munmap(memory, kLength) != 0) refuse("munmap");
    if (round % every == 0 && fsync(file) != 0) refuse("fsync");
    const int written = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (written < 0 || write(written, "text", 4) != 4) refuse("write");
    close(written);
    if (rename(name, other) != 0) refuse("rename");
    if (maps_each_time) memory = map_file(file);
  }
  let_go(memory, file);
}

/* As krb5: FILE has what is about to be done to a database, and that it was done. */
static void log_before_database(const char* path, const char* other) {
  const int file = open_file(path);
  const int database = open_file(other);
  char* const memory = map_file(file);
  for (int round = 0; round < kRounds; ++round) {
    commit(memory);
    change_by_call(database, round);
    commit(memory);
  }
  close(database);
  let_go(memory, file);
}

/* As crm114: the time of a file that is not unmapped yet is touched by a write of its first bytes.
 */
static void touch_after_synchronising(const char* path) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  char bytes[12];
  commit(memory);
  const int other = open(path, O_RDWR | O_CLOEXEC);
  if (other < 0 || read(other, bytes, sizeof(bytes)) != sizeof(bytes)) refuse("read");
  if (strcmp(what, "touches_and_writes") == 0) bytes[0] += 1;
  if (lseek(other, 0, SEEK_SET) != 0 || write(other, bytes, sizeof(bytes)) != sizeof(bytes))
    refuse("write");
  close(other);
  let_go(memory, file);
}

enum { kStepMs = 50, kSteps = 70 }; /* 3.5 seconds in all */

static void store_for_a_while(char* memory) {
  for (int step = 0; step < kSteps; ++step) {
    memory[2 * kPage] += 1;
    usleep(kStepMs * 1000);
  }
}

/* Is synchronised when it begins and when it ends, and not meanwhile. */
static void synchronise_at_ends(const char* path) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  commit(memory);
  if (strcmp(what, "ends_and_stores") == 0) {
    store_for_a_while(memory);
  } else {
    usleep(kSteps * kStepMs * 1000);
  }
  commit(memory);
  let_go(memory, file);
}

/* What a worker does whose parent has mapped the file, and has it still. */
static void work_in_child(const char* path) {
  const int stores_long = strcmp(what, "worker_stores_long") == 0;
  const int reads_long = strcmp(what, "worker_reads_long") == 0;
  const int file = open_file(path);
  char* const memory = map_file(file);
  if (stores_long || reads_long) commit(memory);
  const pid_t child = fork();
  if (child == 0) {
    if (strcmp(what, "worker_of_worker") == 0) {
      const pid_t second = fork();
      if (second == 0) {
        memory[kPage] = 'c';
        _exit(0);
      }
      join(second);
    }
    if (strcmp(what, "worker_stores") == 0) memory[kPage] = 'c';
    if (strcmp(what, "worker_executes") == 0) {
      memory[kPage] = 'c';
      execl("/bin/true", "true", (char*)NULL);
    }
    if (stores_long) store_for_a_while(memory);
    volatile const char* const seen = memory;
    for (int step = 0; reads_long && step < kSteps; ++step) {
      if (seen[0] != 0 && seen[2 * kPage] == 'x') usleep(1);
      usleep(kStepMs * 1000);
    }
    _exit(0);
  }
  for (int step = 0; reads_long && step < kSteps; ++step) {
    memory[2 * kPage] = (char)step;
    commit(memory);
    memory[2 * kPage] += 1;
    usleep(kStepMs * 1000);
  }
  join(child);
  for (int i = 0; i < 2; ++i) {
    memory[0] += 1;
    if (msync(memory, kPage, MS_SYNC) != 0) refuse("msync");
  }
  let_go(memory, file);
}

/* Counters that another process collects. */
static void store_for_readers(const char* path) {
  const int file = open_file(path);
  char* const memory = map_file(file);
  memory[0] = 1;
  run_self("read", path);
  let_go(memory, file);
}

static void stay(const char* path) {
  const int file = open_file(path);
  if (file < 0 || write(STDOUT_FILENO, "r", 1) != 1) exit(1);
  for (;;) pause();
}

/* A child stops itself, and stays so until its parent, which sees that, lets it go on. */
static void stop_child(void) {
  int status = 0;
  volatile int* const may_go =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (may_go == MAP_FAILED) refuse("mmap");
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(*may_go ? 6 : 7);
  }
  if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) exit(1);
  usleep(50000); /* time for a child that goes on by itself to show it */
  *may_go = 1;
  kill(child, SIGCONT);
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) exit(2);
  exit(WEXITSTATUS(status));
}

/* FILE.0, FILE.1 and so on, one after the other. */
static void many(const char* path, int files) {
  for (int i = 0; i < files; ++i) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.%d", path, i);
    const int file = open_file(name);
    char* const memory = map_file(file);
    commit(memory);
    let_go(memory, file);
  }
}

/* FILE.0, FILE.1 and so on, all at a time. */
static void at_once(const char* path, int files) {
  char* memory[64];
  for (int i = 0; i < files && i < 64; ++i) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.%d", path, i);
    memory[i] = map_file(open_file(name));
    commit(memory[i]);
  }
  for (int i = 0; i < files && i < 64; ++i) commit(memory[i]);
}

/* All of a file of 64 KiB is changed in one go. */
static void change_all(const char* path) {
  const size_t length = 16 * kPage;
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, (off_t)length) != 0) refuse("open");
  char* const memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) refuse("mmap");
  for (size_t i = 0; i < length; ++i) memory[i] = (char)rand();
  if (msync(memory, length, MS_SYNC) != 0) refuse("msync");
}

/* FILE.PID. */
static void own_name(const char* path) {
  char name[4096];
  snprintf(name, sizeof(name), "%s.%d", path, (int)getpid());
  with_mapping(name, nothing);
}

/* Prepares the file under another name. */
static void rename_file(const char* path) {
  char name[4096];
  snprintf(name, sizeof(name), "%s.new-XXXXXX", path);
  int file = mkstemp(name);
  if (file < 0 || ftruncate(file, kLength) != 0) refuse("mkstemp");
  char* memory = map_file(file);
  commit(memory);
  let_go(memory, file);
  if (rename(name, path) != 0) refuse("rename");
  file = open_file(path);
  memory = map_file(file);
  commit(memory);
  let_go(memory, file);
}

/* Lets go of the file, and then maps it again in another way. */
static void read_later(const char* path) {
  int file = open_file(path);
  char* memory = map_file(file);
  commit(memory);
  let_go(memory, file);
  file = open(path, O_RDONLY | O_CLOEXEC);
  memory = mmap(NULL, kLength, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) refuse("mmap");
  if (memory[0] != memory[kPage]) exit(1);
  let_go(memory, file);
}

static void write_or_read(const char* path) {
  char bytes[4] = "text";
  const int reads = strcmp(what, "read") == 0;
  const int file = open(path, reads ? O_RDONLY : O_WRONLY);
  if (file < 0) refuse("open");
  if (reads ? read(file, bytes, 4) != 4 : write(file, bytes, 4) != 4) refuse(what);
  close(file);
}

static const struct {
  const char* name;
  void (*middle)(int, char*, const char*);
} kMiddles[] = {
    {"good", nothing},
    {"raw", raw_sync},
    {"namespace", sync_in_a_namespace},
    {"fork_writes", child_commits},
    {"fork_reads", child_waits},
    {"fork_unmaps", child_unmaps},
    {"daemon", child_leaves_session},
    {"other_maps", other_maps},
    {"other_writes", other_writes},
    {"other_reads", other_reads},
    {"stream", stream},
    {"stream_writes", stream_writes},
    {"dup_beneath_stream", dup_beneath_stream},
    {"dup_beneath_output", dup_beneath_output},
    {"unshare_user", unshare_user},
    {"two_mappings", two_mappings},
    {"tries_again", try_again_and_again},
    {"untraced", untraced},
    {"uring", uring},
    {"pinned_buffers", pinned_buffers},
    {"posix_aio", posix_aio},
    {"fixed", fixed_over_part},
    {"collapse", collapse},
    {"clone", clone_file},
    {"two_names", two_names},
    {"pass_on", pass_on},
    {"remap_part", remap_part},
    {"file_pages", file_pages},
    {"threads", threads},
    {"killed", die},
    {"sandbox", sandbox},
    {"sandbox_refuses", sandbox_refuses},
    {"sandbox_of_others", sandbox_of_others},
    {"grow", grow},
    {"fdopen_mapped", fdopen_mapped},
    {"syncs_in_vain", synchronise_in_vain},
    {"in_vain", calls_in_vain},
};

int main(int count, char** words) {
  if (count < 3) return 2;
  what = words[1];
  for (size_t i = 0; i < sizeof(kMiddles) / sizeof(kMiddles[0]); ++i) {
    if (strcmp(what, kMiddles[i].name) == 0) {
      with_mapping(words[2], kMiddles[i].middle);
      return 0;
    }
  }
  if (strcmp(what, "exec") == 0) { /* FILE, then a program and its arguments */
    execv(words[3], words + 3);
    return 127;
  }
  if (strcmp(what, "spawn") == 0) {
    pid_t child = 0;
    if (posix_spawn(&child, words[3], NULL, NULL, words + 3, environ) != 0) return 127;
    join(child);
    return 0;
  }
  if (strcmp(what, "store_only") == 0 || strcmp(what, "hint_only") == 0 ||
      strcmp(what, "sync_only") == 0 || strcmp(what, "later_only") == 0) {
    store_only(words[2]);
  } else if (strcmp(what, "later_mostly") == 0) {
    acknowledge_later(words[2], 0);
  } else if (strcmp(what, "later_and_then") == 0) {
    acknowledge_later(words[2], 1);
  } else if (strcmp(what, "syncs_in_part") == 0) {
    leave_out_the_last_page(words[2]);
  } else if (strcmp(what, "syncs_page_by_page") == 0) {
    synchronise_page_by_page(words[2]);
  } else if (strcmp(what, "log_beside") == 0) {
    write_beside(words[2], count == 4 ? words[3] : "-wal", 0);
  } else if (strcmp(what, "own_fsync") == 0) {
    write_beside(words[2], "-wal", 1);
  } else if (strcmp(what, "store_beside") == 0) {
    store_beside(words[2]);
  } else if (strcmp(what, "syncs_past_the_end") == 0) {
    synchronise_past_the_end(words[2]);
  } else if (strcmp(what, "makes_and_stores") == 0) {
    make_and_then_store(words[2]);
  } else if (strcmp(what, "syncs_last") == 0) {
    around_synchronising(words[2], 300, 1, 0, 0);
  } else if (strcmp(what, "syncs_and_idles") == 0) {
    around_synchronising(words[2], 0, 5, 300, 0);
  } else if (strcmp(what, "syncs_once_and_idles") == 0) {
    around_synchronising(words[2], 0, 1, 2500, 0);
  } else if (strcmp(what, "syncs_at_first") == 0) {
    around_synchronising(words[2], 0, 5, 1500, 1);
  } else if (strncmp(what, "syncs_first", strlen("syncs_first")) == 0) {
    around_synchronising(words[2], 0, 1, 1500, 1);
  } else if (strcmp(what, "fdopen") == 0 || strcmp(what, "fopen") == 0 ||
             strcmp(what, "freopen") == 0) {
    map_a_stream(words[2]);
  } else if (strcmp(what, "after_a_stream") == 0) {
    map_after_a_stream(words[2]);
  } else if (strncmp(what, "writes_elsewhere", strlen("writes_elsewhere")) == 0 && count == 4) {
    write_elsewhere(words[2], words[3]);
  } else if (strcmp(what, "temporaries") == 0) {
    make_temporaries(words[2]);
  } else if (strcmp(what, "made_before") == 0) {
    make_before(words[2]);
  } else if (strcmp(what, "in_new_directory") == 0) {
    map_in_new_directory(words[2]);
  } else if (strcmp(what, "map_sync") == 0) {
    ask_for_map_sync(words[2]);
  } else if (strcmp(what, "in_rounds") == 0) {
    in_rounds(words[2]);
  } else if (strcmp(what, "unlocks") == 0) {
    unlock_and_map_again(words[2]);
  } else if (strcmp(what, "renames_in_vain") == 0) {
    rename_in_vain(words[2]);
  } else if (strcmp(what, "refused_beside") == 0) {
    with_refused_neighbour(words[2]);
  } else if (strcmp(what, "read_only") == 0) {
    read_only(words[2]);
  } else if (strcmp(what, "protect_later") == 0) {
    protect_later(words[2]);
  } else if (strcmp(what, "shared_state") == 0 && count == 4) {
    with_shared_state(words[2], words[3]);
  } else if (strcmp(what, "renames") == 0) {
    rename_file(words[2]);
  } else if (strcmp(what, "reads_later") == 0) {
    read_later(words[2]);
  } else if (strcmp(what, "ask") == 0) {
    ask_for_pawl(words[2]);
  } else if (strcmp(what, "both") == 0 && count == 4) {
    both(words[2], words[3]);
  } else if (strncmp(what, "apart", strlen("apart")) == 0 && count == 4) {
    synchronise_apart(words[2], words[3]);
  } else if (strncmp(what, "touches", strlen("touches")) == 0) {
    touch_after_synchronising(words[2]);
  } else if (strncmp(what, "ends_and", strlen("ends_and")) == 0) {
    synchronise_at_ends(words[2]);
  } else if (strncmp(what, "worker", strlen("worker")) == 0) {
    work_in_child(words[2]);
  } else if (strcmp(what, "for_readers") == 0) {
    store_for_readers(words[2]);
  } else if (strcmp(what, "three") == 0) {
    three_together(words[2]);
  } else if (strncmp(what, "catalogue", strlen("catalogue")) == 0 && count == 4) {
    with_catalogue(words[2], words[3]);
  } else if (strcmp(what, "logs_before") == 0 && count == 4) {
    log_before_database(words[2], words[3]);
  } else if (strcmp(what, "many") == 0 && count == 4) {
    many(words[2], atoi(words[3]));
  } else if (strcmp(what, "at_once") == 0 && count == 4) {
    at_once(words[2], atoi(words[3]));
  } else if (strcmp(what, "change_all") == 0) {
    change_all(words[2]);
  } else if (strcmp(what, "own_name") == 0) {
    own_name(words[2]);
  } else if (strcmp(what, "unmaps_late") == 0) {
    map_again(words[2], 15);
  } else if (strcmp(what, "unmaps_too_late") == 0) {
    map_again(words[2], 1000);
  } else if (strcmp(what, "stop_child") == 0) {
    stop_child();
  } else if (strcmp(what, "stay") == 0) {
    stay(words[2]);
  } else if (strcmp(what, "write") == 0 || strcmp(what, "read") == 0) {
    write_or_read(words[2]);
  } else {
    return 2;
  }
  return 0;
}
