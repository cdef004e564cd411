/* Programs that read their directory take each name in it for one of their own files.  Every check
 * holds with the preload library and without; those that fail are named, and the exit status is 1.
 *
 *   directories DIRECTORY          all cases, on files named *.atomic in DIRECTORY
 *   directories do WHAT FILE       one part of a case, in a process of its own */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"

enum { PAGE = 4096, SEGMENTS = 12, GROWN_PAGES = 3 };

static const char* store; /* the directory of the segments */

static const char* segment(int number) {
  static char path[1024 + 32];
  snprintf(path, sizeof path, "%s/%06d.atomic", store, number);
  return path;
}

static void make_store(void) {
  static char path[1024];
  snprintf(path, sizeof path, "%s", in_directory("store"));
  store = path;
  CHECK(mkdir(store, 0755) == 0);
  for (int i = 0; i < SEGMENTS; ++i) {
    const int fd = open(segment(i), O_RDWR | O_CREAT | O_EXCL, 0644);
    CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0 && close(fd) == 0);
  }
}

static char* map_segment(int fd, size_t pages) {
  return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Each grows by a commit. */
static int grow_all_and_die(const char* directory_of_all) {
  store = directory_of_all;
  for (int i = 0; i < SEGMENTS; ++i) {
    const int fd = open(segment(i), O_RDWR);
    char* at = map_segment(fd, 1);
    if (at == MAP_FAILED || ftruncate(fd, GROWN_PAGES * PAGE) != 0) return 1;
    memcpy(at, "committed", 9);
    if (msync(at, PAGE, MS_SYNC) != 0 || fsync(fd) != 0) return 1;
  }
  raise(SIGKILL);
  return 1;
}

static int hold_until_told(const char* file) {
  const int fd = open(file, O_RDWR);
  char* at = map_segment(fd, 1);
  if (at == MAP_FAILED) return 1;
  memcpy(at, "held", 4);
  if (msync(at, PAGE, MS_SYNC) != 0) return 1;
  raise(SIGSTOP);
  return 0;
}

/* ----------------------------------------------------------------------------- ways to read it */

static int names;       /* of segments */
static int other_names; /* that no segment has */

static int is_dot(const char* name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

/* What is no segment is no part of the store, and it does not start. */
static void count_name(const char* name) {
  if (is_dot(name)) return;
  if (strlen(name) == strlen("000000.atomic") && strcmp(name + 6, ".atomic") == 0) {
    ++names;
  } else {
    ++other_names;
  }
}

static void count_entry(const char* name, long expected_bytes) {
  struct stat status;
  char path[2048];
  count_name(name);
  if (is_dot(name)) return;
  snprintf(path, sizeof path, "%s/%s", store, name);
  CHECK(stat(path, &status) == 0);
  if (expected_bytes != 0) CHECK(status.st_size == expected_bytes);
}

/* The size of each is asked for where its name is found. */
static void by_readdir(long bytes) {
  DIR* stream = opendir(store);
  CHECK(stream != NULL);
  errno = 0;
  for (struct dirent* entry; (entry = readdir(stream)) != NULL;) count_entry(entry->d_name, bytes);
  CHECK(errno == 0);
  closedir(stream);
}

static void by_descriptor(long bytes) {
  DIR* stream = fdopendir(open(store, O_RDONLY | O_DIRECTORY));
  CHECK(stream != NULL);
  for (struct dirent64* entry; (entry = readdir64(stream)) != NULL;)
    count_entry(entry->d_name, bytes);
  closedir(stream);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void by_readdir_r(long bytes) {
  DIR* stream = opendir(store);
  struct dirent entry;
  struct dirent* found = NULL;
  while (readdir_r(stream, &entry, &found) == 0 && found != NULL) count_entry(entry.d_name, bytes);
  closedir(stream);
}
#pragma GCC diagnostic pop

static int is_no_dot(const struct dirent* entry) {
  errno = ERANGE; /* which is nobody's concern */
  return !is_dot(entry->d_name);
}

static void by_scandir(long bytes) {
  struct dirent** entries = NULL;
  const int count = scandir(store, &entries, is_no_dot, alphasort);
  CHECK(count >= SEGMENTS);
  for (int i = 0; i < count; ++i) {
    if (i > 0) CHECK(strcmp(entries[i - 1]->d_name, entries[i]->d_name) < 0);
    count_entry(entries[i]->d_name, bytes);
    free(entries[i]);
  }
  free(entries);
}

static void by_glob(long bytes) {
  glob_t found;
  char pattern[2048];
  snprintf(pattern, sizeof pattern, "%s/*", store);
  CHECK(glob(pattern, 0, NULL, &found) == 0);
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    CHECK(strncmp(found.gl_pathv[i], store, strlen(store)) == 0);
    count_entry(found.gl_pathv[i] + strlen(store) + 1, bytes);
  }
  globfree(&found);
}

typedef void (*Reads)(long bytes);
static const Reads ways[] = {by_readdir, by_descriptor, by_readdir_r, by_scandir, by_glob};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void check_shows_segments_only(Reads read_all, long bytes) {
  names = other_names = 0;
  read_all(bytes);
  CHECK(names == SEGMENTS);
  CHECK(other_names == 0);
}

static void remove_store(void) {
  DIR* stream = opendir(store);
  for (struct dirent* entry; (entry = readdir(stream)) != NULL;) {
    if (is_dot(entry->d_name)) continue;
    CHECK(unlinkat(dirfd(stream), entry->d_name, 0) == 0);
  }
  closedir(stream);
  CHECK(rmdir(store) == 0);
}

/* ------------------------------------------------------------------------------------------------
 */

static void a_store_took_what_a_crash_left_for_its_own(void) {
  for (int way = 0; way < WAYS; ++way) {
    make_store();
    CHECK(WTERMSIG(status_of(start("grow_all_and_die", store))) == SIGKILL);
    check_shows_segments_only(ways[way], GROWN_PAGES * PAGE);
    CHECK(found(segment(SEGMENTS - 1), 0, "committed"));
    remove_store();
  }
}

static void a_store_took_the_journals_of_open_files_for_its_own(void) {
  make_store();
  const pid_t other = start("hold_until_told", segment(3));
  int status = 0;
  CHECK(waitpid(other, &status, WUNTRACED) == other && WIFSTOPPED(status));
  const int fd = open(segment(5), O_RDWR);
  char* at = map_segment(fd, 1);
  CHECK(at != MAP_FAILED);
  memcpy(at, "stored", 6);
  CHECK(msync(at, PAGE, MS_SYNC) == 0);
  for (int way = 0; way < WAYS; ++way) check_shows_segments_only(ways[way], PAGE);
  CHECK(kill(other, SIGCONT) == 0 && status_of(other) == 0);
  /* With its own file open. */
  remove_store();
  CHECK(munmap(at, PAGE) == 0 && close(fd) == 0);
}

static void a_place_in_a_directory_was_lost(void) {
  make_store();
  CHECK(WTERMSIG(status_of(start("grow_all_and_die", store))) == SIGKILL);
  DIR* stream = opendir(store);
  long places[SEGMENTS + 2];
  char found_names[SEGMENTS + 2][256];
  int count = 0;
  for (;;) {
    const long place = telldir(stream);
    const struct dirent* entry = readdir(stream);
    if (entry == NULL || count == SEGMENTS + 2) break;
    places[count] = place;
    snprintf(found_names[count++], sizeof found_names[0], "%s", entry->d_name);
  }
  CHECK(count == SEGMENTS + 2);
  for (int i = count; i-- > 0;) {
    seekdir(stream, places[i]);
    const struct dirent* entry = readdir(stream);
    CHECK(entry != NULL && strcmp(entry->d_name, found_names[i]) == 0);
  }
  rewinddir(stream);
  const struct dirent* first = readdir(stream);
  CHECK(first != NULL && strcmp(first->d_name, found_names[0]) == 0);
  closedir(stream);
  remove_store();
}

/* Their removal is nobody else's. */
static void what_is_no_journal_was_hidden(void) {
  make_store();
  char beside[2048];
  snprintf(beside, sizeof beside, "%s.pawl", segment(7));
  int fd = open(beside, O_RDWR | O_CREAT, 0644);
  CHECK(write(fd, "the program's own", 17) == 17 && close(fd) == 0);
  snprintf(beside, sizeof beside, "%s/alone.atomic.pawl", store);
  fd = open(beside, O_RDWR | O_CREAT, 0644);
  CHECK(close(fd) == 0);
  for (int way = 0; way < WAYS; ++way) {
    names = other_names = 0;
    ways[way](0);
    CHECK(names == SEGMENTS && other_names == 2);
  }
  remove_store();
}

/* It stays where its file is removed. */
static void a_journal_that_cannot_be_recovered_was_hidden(void) {
  make_store();
  CHECK(WTERMSIG(status_of(start("grow_all_and_die", store))) == SIGKILL);
  const int has_journal = has_side(segment(7)); /* with the preload library */
  const int fd = open(side_of(segment(7)), O_RDWR);
  char page[PAGE];
  memset(page, 'x', sizeof page);
  for (int i = 0; has_journal && i < 16; ++i) CHECK(write(fd, page, PAGE) == PAGE);
  if (has_journal) CHECK(close(fd) == 0);
  names = other_names = 0;
  by_readdir(0);
  CHECK(names == SEGMENTS && other_names == has_journal);
  remove_store();
}

/* On a file system that gives the names in another order than they were made in. */
static void a_journal_that_went_with_its_file_was_shown(void) {
  char* mapped[SEGMENTS];
  make_store();
  for (int i = 0; i < SEGMENTS; ++i) {
    const int fd = open(segment(i), O_RDWR);
    mapped[i] = map_segment(fd, 1);
    CHECK(mapped[i] != MAP_FAILED);
    memcpy(mapped[i], "stored", 6);
    CHECK(msync(mapped[i], PAGE, MS_SYNC) == 0 && close(fd) == 0);
  }
  remove_store();
  for (int i = 0; i < SEGMENTS; ++i) CHECK(munmap(mapped[i], PAGE) == 0);
}

static int rename_until_killed(const char* file) {
  char other[2048];
  snprintf(other, sizeof other, "%.*s000099.atomic", (int)(strrchr(file, '/') + 1 - file), file);
  const int fd = open(file, O_RDWR);
  char* at = map_segment(fd, 1);
  while (at != MAP_FAILED) {
    ++*at;
    if (rename(file, other) != 0 || rename(other, file) != 0) return 1;
  }
  return 1;
}

static void what_stands_beside_a_file_that_is_renamed_was_shown(void) {
  enum { CHANGES = 200 };
  int was_renamed = 0;
  make_store();
  const pid_t renames = start("rename_until_killed", segment(3));
  other_names = 0;
  for (int changes = 0; changes < CHANGES;) {
    int is_renamed = 0;
    DIR* stream = opendir(store);
    for (struct dirent* entry; (entry = readdir(stream)) != NULL;) {
      count_name(entry->d_name);
      is_renamed |= strcmp(entry->d_name, "000099.atomic") == 0;
    }
    closedir(stream);
    changes += is_renamed != was_renamed;
    was_renamed = is_renamed;
  }
  CHECK(other_names == 0);
  CHECK(kill(renames, SIGKILL) == 0 && WTERMSIG(status_of(renames)) == SIGKILL);
  remove_store();
}

static void* look_while_cancelled(void* count) {
  int* const looks = count;
  pthread_cancel(pthread_self());
  struct dirent** entries = NULL;
  const int read = scandir(store, &entries, is_no_dot, NULL);
  for (int i = 0; i < read; ++i) free(entries[i]);
  free(entries);
  *looks += read == SEGMENTS;
  glob_t found;
  *looks += glob(segment(0), 0, NULL, &found) == 0 && found.gl_pathc == 1;
  globfree(&found);
  pthread_testcancel();
  return NULL;
}

static void a_thread_that_was_cancelled_ended_the_process(void) {
  pthread_t thread;
  void* result = NULL;
  int looks = 0;
  make_store();
  CHECK(pthread_create(&thread, NULL, look_while_cancelled, &looks) == 0);
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  CHECK(looks == 2);
  remove_store();
}

static void a_directory_that_is_none_was_read(void) {
  struct dirent** entries = NULL;
  CHECK(opendir(in_directory("none")) == NULL && errno == ENOENT);
  CHECK(scandir(in_directory("none"), &entries, NULL, NULL) == -1 && errno == ENOENT);
  const int fd = open(in_directory("file"), O_RDWR | O_CREAT, 0644);
  CHECK(fdopendir(fd) == NULL && errno == ENOTDIR);
  close(fd);
  unlink(in_directory("file"));
  glob_t found;
  CHECK(glob(in_directory("none/*"), 0, NULL, &found) == GLOB_NOMATCH);
}

/* ------------------------------------------------------------------------------------------------
 */

static int do_part(const char* what, const char* file) {
  if (strcmp(what, "grow_all_and_die") == 0) return grow_all_and_die(file);
  if (strcmp(what, "rename_until_killed") == 0) return rename_until_killed(file);
  if (strcmp(what, "hold_until_told") == 0) return hold_until_told(file);
  return 2;
}

static void all_cases(void) {
  a_store_took_what_a_crash_left_for_its_own();
  a_store_took_the_journals_of_open_files_for_its_own();
  a_place_in_a_directory_was_lost();
  what_is_no_journal_was_hidden();
  a_journal_that_cannot_be_recovered_was_hidden();
  a_journal_that_went_with_its_file_was_shown();
  what_stands_beside_a_file_that_is_renamed_was_shown();
  a_thread_that_was_cancelled_ended_the_process();
  a_directory_that_is_none_was_read();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
