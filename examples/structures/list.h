/* What the map needs of its lists. */
#ifndef PAWL_EXAMPLES_LIST_H
#define PAWL_EXAMPLES_LIST_H

#include "structures.h"

/* In a failure-atomic section. */
void list_begin(struct list* list);

#endif
