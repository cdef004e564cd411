#ifndef COUNTER_H
#define COUNTER_H

#ifdef __cplusplus
extern "C" {
#endif
struct counter {
  long count;
  char name[20];
};
void counter_add(struct counter* counter, long number);
int marks_are_linked(void);
#ifdef __cplusplus
}
#endif
#endif
