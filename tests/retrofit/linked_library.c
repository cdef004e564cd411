#define _GNU_SOURCE
#include "linked_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

char* mapped_by_constructor;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char* at;
static const char* path_of_worker;
static int failed;

static char* map_file(const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT, 0644);
  if (ftruncate(fd, PAGE) != 0) return MAP_FAILED;
  char* mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return mapped;
}

static int commit(void) {
  ++at[0];
  return msync(at, PAGE, MS_SYNC);
}

static void* work(void* unused) {
  char* mapped = map_file(path_of_worker);
  char side[4096 + 8];
  strcat(strcpy(side, path_of_worker), ".pawl");
  if (mapped == MAP_FAILED || access(side, F_OK) != 0) {
    ++failed;
    return unused;
  }
  mapped[0] = 'w';
  if (msync(mapped, PAGE, MS_SYNC) != 0 || munmap(mapped, PAGE) != 0) ++failed;
  return unused;
}

static void before_fork(void) {
  pthread_mutex_lock(&mutex);
  if (path_of_worker != NULL && commit() != 0) ++failed;
}

static void after_fork(void) {
  pthread_t worker;
  if (path_of_worker != NULL) {
    if (pthread_create(&worker, NULL, work, NULL) != 0) ++failed;
    pthread_join(worker, NULL);
    const int fd = open("/dev/null", O_RDONLY);
    if (fd < 0 || close(fd) != 0) ++failed;
  }
  pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void) { pthread_mutex_unlock(&mutex); }

__attribute__((constructor)) static void begin(int count, char** arguments) {
  pthread_atfork(before_fork, after_fork, after_fork_in_child);
  if (count == 4 && strcmp(arguments[2], "constructor") == 0)
    mapped_by_constructor = map_file(arguments[3]);
}

int library_map(const char* path) {
  at = map_file(path);
  return at == MAP_FAILED ? -1 : 0;
}

int library_commit(void) {
  pthread_mutex_lock(&mutex);
  const int outcome = commit();
  pthread_mutex_unlock(&mutex);
  return outcome;
}

int library_make(const char* path) {
  pthread_mutex_lock(&mutex);
  const int fd = open(path, O_RDWR | O_CREAT, 0644);
  const ssize_t done = write(fd, "x", 1);
  close(fd);
  pthread_mutex_unlock(&mutex);
  return done == 1 ? 0 : -1;
}

void library_works_around_forks(const char* path) { path_of_worker = path; }
int library_failures(void) { return failed; }

int getsubopt(char** options, char* const* tokens, char** value) {
  (void)options;
  (void)tokens;
  (void)value;
  return -2;
}

int msync(void* address, unsigned long length, int flags) {
  int (*next)(void*, unsigned long, int);
  *(void**)&next = dlsym(RTLD_NEXT, "msync");
  return next(address, length, flags);
}
