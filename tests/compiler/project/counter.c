#include "counter.h"

#include <dlfcn.h>
#include <pawl/store.h>

void counter_add(struct counter* counter, long number) { counter->count += number; }

int marks_are_linked(void) { return &pawl_stored != 0; }
