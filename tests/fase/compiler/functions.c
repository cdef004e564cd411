/* Functions that sections call by ways that are easily not seen, and what is no one's in
 * particular: counters of a thread, computed gotos, arguments of a variable number. */
#include <pthread.h>
#include <stdarg.h>

#include "crash_run_time.h"

struct data;
typedef void action(struct data* data, long value);
struct actions {
  action* first;
};
struct data {
  pthread_mutex_t lock;
  long values[20];
  unsigned char code[16];
};

static struct data* the_data(void) { return (struct data*)ARENA; }

/* An address that is stored, returned, chosen with nothing to return, in a table of another module.
 */
static void stored(struct data* data, long value) {
  data->values[0] += value;
  data->values[1] = data->values[0];
}
static void returned(struct data* data, long value) {
  data->values[1] += value;
  data->values[2] = data->values[1];
}
static void chosen(struct data* data, long value) {
  data->values[2] ^= value;
  data->values[0] -= data->values[2];
}
static void in_table(struct data* data, long value) {
  data->values[3] += value;
  data->values[4] = data->values[3];
}
__attribute__((noinline)) void store(struct actions* actions) { actions->first = stored; }
__attribute__((noinline)) action* function_returned(void) { return returned; }
const struct actions functions_table = {in_table};

/* As another module would have it, which sees no initial value. */
static const struct actions* table_from_elsewhere(void) {
  const struct actions* table = &functions_table;
  __asm__("" : "+r"(table));
  return table;
}

static void call_all(struct data* data, long value) {
  struct actions actions;
  store(&actions);
  action* const first = actions.first;
  action* const second = function_returned();
  action* const last = table_from_elsewhere()->first;
  pthread_mutex_lock(&data->lock);
  first(data, value);
  second(data, value);
  (value % 2 != 0 ? chosen : second)(data, value);
  last(data, value);
  pthread_mutex_unlock(&data->lock);
}

/* Counted by each thread for itself. */
static _Thread_local long calls;
static _Thread_local long calls_by_value[4];
static void count(struct data* data, long value) {
  calls++;
  calls_by_value[value % 4]++;
  pthread_mutex_lock(&data->lock);
  data->values[5] += value;
  data->values[6] = data->values[5] * 3;
  calls++;
  calls_by_value[value % 4]++;
  data->values[5] ^= data->values[6];
  pthread_mutex_unlock(&data->lock);
}

/* A computed goto, in a table of labels. */
static __attribute__((noinline)) long run(struct data* data, long value) {
  static void* const labels[] = {&&add, &&subtract, &&twice, &&end};
  long held = value;
  pthread_mutex_lock(&data->lock);
  const unsigned char* code = data->code;
  goto* labels[*code];
add:
  data->values[9] += held++;
  goto* labels[*++code];
subtract:
  data->values[10] = data->values[9] - held;
  goto* labels[*++code];
twice:
  data->values[9] *= 2;
  data->values[11] = data->values[9];
  goto* labels[*++code];
end:
  data->values[12] += held;
  pthread_mutex_unlock(&data->lock);
  return held;
}

static void program(struct data* data, long value) {
  pthread_mutex_lock(&data->lock);
  for (int i = 0; i < 7; ++i) data->code[i] = (unsigned char)((value >> i) % 3);
  data->code[7] = 3;
  pthread_mutex_unlock(&data->lock);
}

/* Arguments of a variable number, outside of the section; their function calls others inside. */
__attribute__((noinline)) long sum_of(struct data* data, int number, ...) {
  long sum = 0;
  for (int turn = 0; turn < 2; ++turn) {
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < number; ++i) sum += va_arg(arguments, long);
    va_end(arguments);
  }
  pthread_mutex_lock(&data->lock);
  data->values[13] += sum;
  function_returned()(data, sum);
  data->values[14] = data->values[13];
  pthread_mutex_unlock(&data->lock);
  return sum;
}

__attribute__((noinline)) static long added(struct data* data, long value) {
  data->values[19] += value;
  return data->values[19];
}

/* What a variable of the program holds decides behind a call which function is called next. */
__attribute__((noinline)) static long choose_by_setting(struct data* data, long value) {
  pthread_mutex_lock(&data->lock);
  const unsigned setting = own_number;
  long sum = added(data, value);
  if (own_number % 3 == 0) {
    sum += added(data, sum);
  } else {
    data->values[15] += sum;
    sum -= added(data, sum ^ setting);
  }
  data->values[16] = sum;
  pthread_mutex_unlock(&data->lock);
  return sum;
}

/* Which way was taken is known where a region begins, and asked for again in later ones. */
__attribute__((noinline)) static void choose_again(struct data* data, long value) {
  pthread_mutex_lock(&data->lock);
  const int is_odd = value & 1;
  for (int turn = 0; turn < 3; ++turn) {
    data->values[17] ^= value + turn;
    if (is_odd) {
      data->values[18] += data->values[17];
    } else {
      data->values[17] += data->values[18] + 1;
    }
  }
  pthread_mutex_unlock(&data->lock);
}

/* Neither reads nor stores: nothing is to be resumed in them, and yet a section may call them. */
static long doubled(long value) { return 2 * value; }
static long negated(long value) { return -value; }
static long (*const pure[])(long) = {doubled, negated};
__attribute__((noinline)) static void call_pure(struct data* data, long value) {
  pthread_mutex_lock(&data->lock);
  data->values[18] += value;
  data->values[19] = pure[data->values[18] & 1](value);
  pthread_mutex_unlock(&data->lock);
}

/* What a volatile counter held waits in a frame to be counted on. */
static unsigned counted;
__attribute__((noinline)) static void count_around_call(struct data* data, long value) {
  pthread_mutex_lock(&data->lock);
  data->values[18] ^= value;
  const unsigned before = counted;
  added(data, value);
  counted = before + 1;
  pthread_mutex_unlock(&data->lock);
}

void operation(unsigned number) {
  struct data* const data = the_data();
  const long value = (number * 7919) % 101;
  switch (number % 9) {
    case 0:
      call_all(data, value);
      break;
    case 1:
      count(data, value);
      break;
    case 2:
      program(data, value);
      break;
    case 3:
      run(data, value);
      break;
    case 4:
      sum_of(data, 3, value, 2L, 3L);
      break;
    case 5:
      choose_by_setting(data, value);
      break;
    case 6:
      choose_again(data, value);
      break;
    case 7:
      count_around_call(data, value);
      break;
    case 8:
      call_pure(data, value);
      break;
  }
}

int main(void) { return run_operations(90); }
