// Stores that branches part: into one object they share a mark, and what is stored on one way only
// is marked on that way only.  The functions are not seen through, so that nobody knows which way
// is gone.
#include <string.h>

#include "cases.h"

struct record {
  long first, second, third, fourth;
  char name[8];
  struct record* next;
};

static volatile int zero = 0;
static volatile int three = 3;

#define OWN __attribute__((noinline)) static

OWN void store_around(struct record* to, int way) {
  to->first = way;
  if (way != 0) to->second = way * 7;
  to->third = 9;
}
CASE(blocks_around_a_branch, 1) { store_around((struct record*)a, three); }
CASE(blocks_around_a_branch_not_taken, 1) { store_around((struct record*)a, zero); }

OWN void store_on_each_way(struct record* to, int way) {
  switch (way) {
    case 0:
      to->first = 5;
      break;
    case 1:
    case 3:
      to->second = 6;
      to->name[3] = 1;
      break;
    default:
      to->third = 8;
      break;
  }
  to->fourth = way;
}
CASE(blocks_on_each_way, 2) {
  struct record* const to = (struct record*)a;
  store_on_each_way(to, three);
  store_on_each_way(to + 8, zero);
}

OWN void commit_on_one_way(struct record* to, int way) {
  to->first = way + 1;
  if (way > 2) {
    to->second = 4;
    collect();
    to->first = 11;
  }
  to->third = 8;
}
CASE(blocks_commit_on_one_way, 0) {
  commit_on_one_way((struct record*)a, three);
  collect();
  commit_on_one_way((struct record*)a + 1, zero);
}

OWN void commit_behind_a_switch(struct record* to, int way) {
  to->first = way + 1;
  switch (way) {
    case 3:
    case 4:
    case 9:
      to->second = 5;
      break;
    case 5:
    case 7:
    default:
      collect();
      break;
  }
  to->third = 7;
}
CASE(blocks_commit_behind_a_switch, 0) {
  for (int way = 0; way < 11; ++way) {
    commit_behind_a_switch((struct record*)a + way, way + zero);
    collect();
  }
}

OWN int store_in_a_loop(struct record* to, int turns) {
  to->first = turns;
  int sum = 0;
  for (int i = 0; i < turns; ++i) {
    if ((i & 1) != 0) to->second = i;
    if (i == 2) collect();
    to->third = i;
    sum += (int)to->fourth;
  }
  to->fourth = sum + 3;
  return sum;
}
CASE(blocks_around_a_loop, 0) {
  store_in_a_loop((struct record*)a, three);
  store_in_a_loop((struct record*)a + 1, zero);
}

// Nothing is stored, and so nothing is marked: else a commit would take lines that nobody changed.
OWN long store_seldom(struct record* to, int way) {
  if (way > 1) to->first = 1;
  const long sum = to->fourth * 3;
  if (way > 2) to->second = 2;
  return sum;
}
CASE(blocks_without_a_store, 0) {
  opaque((void*)store_seldom((struct record*)a, zero));
  expect(marks_made() == 0, "what is not stored has no mark");
}

// Far from each other they are marked apart: a mark for both would take lines between them.
OWN void store_far_apart(char* to, int way) {
  to[0] = 1;
  if (way != 0) to[2000] = 2;
  to[4000] = 3;
}
CASE(blocks_far_apart, 3) {
  store_far_apart(a, three);
  expect(bytes_marked() < 100, "what lies between is not marked");
}

OWN void return_early(struct record* to, int way) {
  to->first = way;
  if (way == 3) return;
  memset(to->name, way, sizeof to->name);
  if (way == 4) return;
  to->next = to;
}
CASE(blocks_return_early, 0) {
  for (int way = 0; way < 6; ++way) {
    return_early((struct record*)a + way, way + zero);
    collect();
  }
}

// The object's start stands at the end of what is stored to.
OWN void store_backwards(long* end, int way) {
  end[-1] = way;
  if (way != 0) end[-2] = 3;
  end[-3] = 4;
}
CASE(blocks_backwards, 1) { store_backwards((long*)(a + 256), three); }
