/* The structures of examples/structures, in a file of pawl/fase.h.  The scheme is the compiler's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ido/subject.h"
#include "structures/structures.h"

struct subject {
  pawl_fase* file;
  enum subject_kind kind;
  void* structure;
};

struct subject* subject_open(const char* path, enum subject_kind kind, uint64_t buckets) {
  struct subject* subject = calloc(1, sizeof *subject);
  if (subject == NULL) return NULL;
  subject->kind = kind;
  struct pawl_fase_options options;
  if (pawl_fase_options_init(&options) == 0) {
#ifdef BENCH_UNPROTECTED
    options.unprotected = 1;
#endif
    subject->file = pawl_fase_open(path, &options);
  }
  if (subject->file != NULL) {
    switch (kind) {
      case SUBJECT_STACK:
        subject->structure = stack_make(subject->file);
        break;
      case SUBJECT_QUEUE:
        subject->structure = queue_make(subject->file);
        break;
      case SUBJECT_LIST:
        subject->structure = list_make(subject->file);
        break;
      case SUBJECT_MAP:
        subject->structure = map_make(subject->file, buckets);
        break;
    }
  }
  if (subject->structure != NULL) return subject;
  fprintf(stderr, "%s: %s\n", path, pawl_last_error());
  free(subject);
  return NULL;
}

void subject_close(struct subject* subject) {
  pawl_fase_close(subject->file);
  free(subject);
}

bool subject_insert(struct subject* subject, uint64_t key, uint64_t value) {
  switch (subject->kind) {
    case SUBJECT_STACK:
      return stack_push(subject->file, subject->structure, value);
    case SUBJECT_QUEUE:
      return queue_put(subject->file, subject->structure, value);
    case SUBJECT_LIST:
      return list_put(subject->file, subject->structure, key, value);
    default:
      return map_put(subject->file, subject->structure, key, value);
  }
}

bool subject_remove(struct subject* subject, uint64_t key) {
  uint64_t value = 0;
  switch (subject->kind) {
    case SUBJECT_STACK:
      return stack_pop(subject->file, subject->structure, &value);
    case SUBJECT_QUEUE:
      return queue_take(subject->file, subject->structure, &value);
    case SUBJECT_LIST:
      return list_remove(subject->file, subject->structure, key);
    default:
      return map_remove(subject->file, subject->structure, key);
  }
}

bool subject_get(struct subject* subject, uint64_t key, uint64_t* value) {
  return subject->kind == SUBJECT_LIST ? list_get(subject->structure, key, value)
                                       : map_get(subject->structure, key, value);
}

struct subject_counts subject_count(struct subject* subject) {
  struct pawl_fase_statistics statistics;
  struct subject_counts counts = {0, 0, 0};
  if (pawl_fase_stats(subject->file, &statistics) == 0) {
    counts.fences = statistics.fences;
    counts.lines = statistics.lines_flushed;
    counts.bytes = statistics.bytes_logged;
  }
  return counts;
}
