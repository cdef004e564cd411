// What is never in a mapping.  No function of this file calls for a mark.
#include <string.h>

struct large {
  long words[9];
};
struct list {
  struct list* next;
  int value;
};

int global;
static int hidden[100];
_Thread_local int of_thread;
extern int elsewhere[10];
extern struct large of_others;
void uses(const void*);

void to_globals(int value) {
  global = value;
  hidden[value & 31] = value;
  elsewhere[value & 7] = value;
  of_thread = value;
  memset(hidden, value, sizeof hidden);
  for (int i = 0; i < 100; ++i) hidden[i] = i * value;
  uses(hidden);
}

static int counted(void) {
  static int count;
  return ++count;
}
int to_static(void) { return counted() + counted(); }

int to_locals(int value) {
  int numbers[50];
  struct list first = {0, value};
  struct list second = {&first, value};
  for (int i = 0; i < 50; ++i) numbers[i] = value + i;
  uses(numbers);
  uses(&second);
  return numbers[value & 31] + second.next->value;
}

void to_one_of_two(int which, int value) {
  int here[10];
  int* to = which ? here : hidden;
  to[value & 7] = value;
  uses(here);
}

long to_argument(struct large by_value) {
  by_value.words[3] = 4;
  uses(&by_value);
  return by_value.words[2];
}

void copied_to_locals(const struct large* from) {
  struct large copy = *from;
  copy.words[1] = 3;
  uses(&copy);
  of_others = copy;
}

void to_variable_length(int n) {
  char bytes[n];
  memset(bytes, 3, (unsigned long)n);
  for (int i = 0; i < n; ++i) bytes[i] = (char)i;
  uses(bytes);
}

__attribute__((naked)) void without_prologue(void) { __asm__("ret"); }
