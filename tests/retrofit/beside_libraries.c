/* A program that is linked with a library (linked_library.c): what the library's constructor and
 * its fork handlers do, and which functions are found by handle.  Every check holds with the
 * preload library; those that fail are named, and the exit status is 1.
 *
 *   beside_libraries DIRECTORY        all cases, on files named *.atomic in DIRECTORY
 *   beside_libraries do WHAT FILE     one part of a case, in a process of its own */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "linked_library.h"
#include "parts.h"

enum { PAGE = 4096, FORKS = 200, FINDS = 300, TURNS_MAX = 60000, SECONDS_MAX = 10 };

/* As status_of(): one that hangs, perhaps with all signals blocked, is killed. */
static int ends_in_time(pid_t child) {
  int status = 0;
  for (int left = 1000 * SECONDS_MAX; left > 0; --left) {
    if (waitpid(child, &status, WNOHANG) == child) return status;
    usleep(1000);
  }
  kill(child, SIGKILL);
  return status_of(child);
}

static int status_in_time(const char* what, const char* file) {
  return ends_in_time(start(what, file));
}

/* ------------------------------------------------------------------------- the constructor's file
 */

static int store_and_die(void) {
  char* at = mapped_by_constructor;
  memcpy(at, "stored", 6);
  if (msync(at, PAGE, MS_SYNC) != 0) return 98;
  memcpy(at, "undone", 6);
  kill(getpid(), SIGKILL);
  return 1;
}

static void what_a_constructor_mapped_was_not_protected(void) {
  const char* path = in_directory("constructor.atomic");
  const int status = status_in_time("constructor", path);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  CHECK(has_side(path));
  close(open(path, O_RDWR)); /* recovers it */
  CHECK(found(path, 0, "stored"));
  unlink(path);
}

/* ------------------------------------------------------------------------------------------ forks
 */

static const char* made;
static int ends;

static void* commit_often(void* unused) {
  while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) CHECK(library_commit() == 0);
  return unused;
}

static void* make_often(void* unused) {
  while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) CHECK(library_make(made) == 0);
  return unused;
}

static int fork_beside(void* (*work)(void*), const char* file) {
  pthread_t thread;
  made = file;
  if (library_map(file) != 0 || pthread_create(&thread, NULL, work, NULL) != 0) return 98;
  for (int i = 0; i < FORKS; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(status_of(child) == 0);
  }
  __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  return failures != 0;
}

static int fork_with_work(const char* file) {
  char worker[4096];
  snprintf(worker, sizeof worker, "%s.worker.atomic", file);
  if (library_map(file) != 0) return 98;
  library_works_around_forks(worker);
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(status_of(child) == 0);
  }
  CHECK(library_failures() == 0);
  unlink(worker);
  return failures != 0;
}

static void forks_hung_for_a_lock_of_a_linked_library(void) {
  const char* path = in_directory("forks.atomic");
  CHECK(status_in_time("fork_beside_commits", path) == 0);
  CHECK(status_in_time("fork_beside_opens", path) == 0);
  unlink(path);
}

static void calls_of_fork_handlers_bypassed_the_mapping(void) {
  const char* path = in_directory("handlers.atomic");
  CHECK(status_in_time("fork_with_work", path) == 0);
  CHECK(found(path, 0, "\3"));
  unlink(path);
}

/* ------------------------------------------------------------------------------- found by handle
 */

static void functions_of_linked_libraries_were_not_found_by_handle(void) {
  void* program = dlopen(NULL, RTLD_NOW);
  Dl_info libc;
  Dl_info here;
  Dl_info first;
  void* in_library = dlsym(program, "getsubopt");
  CHECK(dladdr(in_library, &here) != 0 && dladdr(dlsym(program, "library_map"), &first) != 0);
  CHECK(here.dli_fbase == first.dli_fbase);
  CHECK(in_library == dlsym(RTLD_DEFAULT, "getsubopt"));
  void* library = dlopen("libc.so.6", RTLD_NOW);
  CHECK(dladdr(dlsym(library, "getsubopt"), &here) != 0);
  CHECK(dladdr(dlsym(library, "abort"), &libc) != 0 && here.dli_fbase == libc.dli_fbase);
  dlclose(library);
  dlclose(program);
}

static void functions_found_by_handle_beside_a_linked_library_bypassed_the_mapping(void) {
  void* library = dlopen("libc.so.6", RTLD_NOW);
  CHECK(dlsym(library, "msync") == dlsym(RTLD_DEFAULT, "msync"));
  dlclose(library);
}

static int begins;

static void* find_by_handle(void* handle) {
  while (!__atomic_load_n(&begins, __ATOMIC_ACQUIRE)) {
  }
  CHECK(dlsym(handle, "getenv") != NULL);
  return NULL;
}

static void find_beside_a_constructor(int turns) {
  void* program = dlopen(NULL, RTLD_NOW);
  pthread_t thread;
  if (program == NULL || pthread_create(&thread, NULL, find_by_handle, program) != 0) _exit(98);
  usleep(200); /* until it runs */
  __atomic_store_n(&begins, 1, __ATOMIC_RELEASE);
  for (volatile int i = 0; i < turns; ++i) {
  }
  CHECK(dlopen("finding_plugin.so", RTLD_NOW) != NULL);
  pthread_join(thread, NULL);
  _exit(failures);
}

/* The children of one that has found nothing yet: each for the first time. */
static int find_for_the_first_time(void) {
  for (int i = 0; i < FINDS && failures == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) find_beside_a_constructor(TURNS_MAX * i / FINDS);
    CHECK(ends_in_time(child) == 0);
  }
  return failures != 0;
}

static void a_first_function_found_by_handle_hung_beside_dlopen(void) {
  CHECK(status_in_time("find", "") == 0);
}

/* ------------------------------------------------------------------------------------------------
 */

static int do_part(const char* what, const char* file) {
  if (strcmp(what, "constructor") == 0) return store_and_die();
  if (strcmp(what, "fork_beside_commits") == 0) return fork_beside(commit_often, file);
  if (strcmp(what, "fork_beside_opens") == 0) return fork_beside(make_often, file);
  if (strcmp(what, "fork_with_work") == 0) return fork_with_work(file);
  if (strcmp(what, "find") == 0) return find_for_the_first_time();
  return 2;
}

static void all_cases(void) {
  functions_of_linked_libraries_were_not_found_by_handle();
  functions_found_by_handle_beside_a_linked_library_bypassed_the_mapping();
  a_first_function_found_by_handle_hung_beside_dlopen();
  what_a_constructor_mapped_was_not_protected();
  forks_hung_for_a_lock_of_a_linked_library();
  calls_of_fork_handlers_bypassed_the_mapping();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
