/* The C library's functions that copy and fill memory, in sections: from constants, arguments and
 * fields of the file, forms that check their room among them (-D_FORTIFY_SOURCE=2).  And those that
 * compute. */
#define _GNU_SOURCE
#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "crash_run_time.h"

struct data {
  pthread_mutex_t lock;
  char name[24];
  char other[24];
  char text[48];
  long lengths[4];
  double real, other_real;
  double complex point;
};

static struct data* the_data(void) { return (struct data*)ARENA; }

/* What both say is not known to be apart. */
__attribute__((noinline)) static void copy_string(struct data* data, char* to, const char* from) {
  pthread_mutex_lock(&data->lock);
  data->lengths[0]++;
  strcpy(to, from);
  data->lengths[1] = data->lengths[0] + to[0];
  pthread_mutex_unlock(&data->lock);
}

static void copy_constants(struct data* data) {
  pthread_mutex_lock(&data->lock);
  strcpy(data->name, "a name");
  data->lengths[2] = stpcpy(data->other, "another") - data->other;
  strncpy(data->text, "text", sizeof data->text - 1);
  pthread_mutex_unlock(&data->lock);
}

/* Twice onto its own source, by another name. */
static void copy_fields(struct data* data, unsigned bytes) {
  pthread_mutex_lock(&data->lock);
  strcpy(data->text, data->name);
  char* const end = stpcpy(data->text + strlen(data->text), data->other);
  data->lengths[3] = end - data->text;
  strncpy(data->name, data->text, bytes);
  strncpy(data->other, data->text + bytes, bytes);
  data->name[23] = data->other[23] = 0;
  pthread_mutex_unlock(&data->lock);
}

/* From what a frame keeps. */
static void copy_local(struct data* data, unsigned number) {
  char local[20];
  memset(local, 'a' + (int)(number % 26), sizeof local - 1);
  local[number % (sizeof local - 1)] = 0;
  local[sizeof local - 1] = 0;
  pthread_mutex_lock(&data->lock);
  data->lengths[0] ^= number;
  strcpy(data->other, local);
  stpcpy(local, data->name);
  data->name[0] = local[0] == 'z' ? 'a' : (char)(local[0] + 1);
  strncpy(data->text, local, sizeof local);
  data->text[sizeof local] = 0;
  pthread_mutex_unlock(&data->lock);
}

__attribute__((noinline)) static void copy_bytes(struct data* data, char* to, const char* from,
                                                 unsigned bytes) {
  pthread_mutex_lock(&data->lock);
  data->lengths[1] += bytes;
  memcpy(to, from, bytes);
  char* const end = mempcpy(data->text, from, bytes);
  data->lengths[2] = end - data->text;
  memmove(data->text + 1, data->text, bytes);
  memset(data->text + bytes, (int)bytes, 3);
  pthread_mutex_unlock(&data->lock);
}

static void zero_bytes(struct data* data, unsigned bytes) {
  pthread_mutex_lock(&data->lock);
  data->lengths[3] += data->text[0];
  bzero(data->text, bytes);
  explicit_bzero(data->other, bytes);
  data->lengths[2] = data->lengths[3];
  pthread_mutex_unlock(&data->lock);
}

/* Of no bytes, which only some levels of optimisation drop. */
static void copy_nothing(struct data* data, const char* from, unsigned bytes) {
  struct nothing {};
  struct nothing* const to = (struct nothing*)data->other;
  pthread_mutex_lock(&data->lock);
  data->lengths[0]++;
  memcpy(data->name, from, 0);
  memmove(data->other, from, bytes & 0);
  memset(data->text, 0, 0 * sizeof(long));
  *to = *(const struct nothing*)from;
  data->lengths[1] = data->lengths[0];
  pthread_mutex_unlock(&data->lock);
}

/* Volatile: in recovery it goes nowhere, and there must be room for it. */
static char last_name[24];
static void copy_out(struct data* data) {
  pthread_mutex_lock(&data->lock);
  data->lengths[0] += 3;
  strcpy(last_name, data->name);
  data->lengths[1] ^= data->lengths[0];
  pthread_mutex_unlock(&data->lock);
}

/* Between stores, in one region with them. */
static void compute(struct data* data, double number) {
  pthread_mutex_lock(&data->lock);
  ++data->lengths[0];
  if (data->lengths[0] > 1) data->real = sqrt(data->other_real);
  data->other_real = number + floor(exp(sin(data->real))) + fmod(number, 3.0);
  if (data->other_real > 1.0) data->real = log(data->other_real) + pow(data->other_real, 0.5);
  data->lengths[1] += (unsigned)(atan2(data->real, number + 1) * 100);
  data->point *= data->real + number * I;
  data->point = (1 + data->point) / (data->point - 2000);
  pthread_mutex_unlock(&data->lock);
}

void operation(unsigned number) {
  struct data* const data = the_data();
  const unsigned bytes = 1 + number * 7 % 22;
  switch (number % 9) {
    case 0:
      copy_constants(data);
      break;
    case 1:
      copy_string(data, data->text, data->name);
      break;
    case 2:
      copy_fields(data, bytes);
      break;
    case 3:
      copy_local(data, number);
      break;
    case 4:
      copy_bytes(data, data->other, data->name, bytes);
      data->other[23] = 0;
      break;
    case 5:
      zero_bytes(data, bytes);
      break;
    case 6:
      copy_out(data);
      break;
    case 7:
      copy_nothing(data, data->text, bytes);
      break;
    case 8:
      compute(data, number);
      break;
  }
}

int main(void) { return run_operations(70); }
