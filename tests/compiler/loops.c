// Loops of every shape.  Those with a number of marks store a contiguous range, which is one mark
// (and one for each part into which the compiler takes the loop: its vectors, and the rest).
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "cases.h"

static volatile int hundred = 100;
static volatile int thousand = 1003;
static volatile int none = 0;
static volatile size_t stride = 24;

CASE(loop_bytes, 3) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) a[i] = (char)(i * 3 + 1);
}
CASE(loop_words, 3) {
  const int n = thousand;
  long* to = (long*)(a + 8);
  for (int i = 0; i < n; ++i) to[i] = i * 3 + 1;
}
CASE(loop_unaligned_words, 3) {
  struct __attribute__((packed)) word {
    int value;
  }* to = (struct word*)(a + 3);
  const int n = thousand;
  for (int i = 0; i < n; ++i) to[i].value = i + 1;
}
CASE(loop_same_byte, 3) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) a[i] = 7;
}
CASE(loop_downwards, 0) {
  int n = thousand;
  while (n-- > 0) a[n] = (char)n;
}
CASE(loop_down_to_first, 3) {
  unsigned char* to = (unsigned char*)a + thousand;
  while (to != (unsigned char*)a) *--to = 5;
}
CASE(loop_no_turns, 3) {
  const int n = none;
  for (int i = 0; i < n; ++i) a[i] = (char)(i * 3 + 1);
}
CASE(loop_one_turn, 3) {
  const int n = none + 1;
  for (int i = 0; i < n; ++i) a[i] = (char)(i * 3 + 1);
}
CASE(loop_of_known_count, 3) {
  for (int i = 0; i < 300; ++i) ((int*)a)[i] = i * i;
}
CASE(loop_short, 3) {
  for (int i = 0; i < 3; ++i) ((int*)a)[i] = i * i;
}
CASE(loop_stride_2, 3) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) a[2 * i] = (char)(i + 1);
}
CASE(loop_stride_24, 3) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) *(int*)(a + 24 * i) = i + 1;
}
CASE(loop_stride_64, 3) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) a[64 * i] = (char)(i + 1);
}
CASE(loop_stride_200, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) a[200 * i] = (char)(i + 1);
}
CASE(loop_stride_variable, 0) {
  const int n = hundred;
  const size_t by = stride;
  for (int i = 0; i < n; ++i) a[by * (size_t)i] = (char)(i + 1);
}
CASE(loop_stride_negative, 3) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) *(int*)(a + 5000 - 24 * i) = i + 1;
}
struct pair {
  int key;
  char gap[12];
  long value;
};
CASE(loop_of_structs, 3) {
  const int n = hundred;
  struct pair* to = (struct pair*)(a + 16);
  for (int i = 0; i < n; ++i) {
    to[i].value = i;
    to[i].key = -i;
  }
}
struct big {
  char first;
  char gap[200];
  char last;
};
CASE(loop_of_ends_of_structs, 0) {
  const int n = hundred;
  struct big* to = (struct big*)(a + 16);
  for (int i = 0; i < n; ++i) {
    to[i].first = (char)i;
    to[i].last = (char)~i;
  }
}
CASE(loop_of_copies, 0) {
  struct pair* to = (struct pair*)(a + 16);
  const struct pair what = {1, "gap", 2};
  const int n = hundred;
  for (int i = 0; i < n; ++i) to[i] = what;
}
CASE(loop_of_two_ranges, 10) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(i + 1);
    ((int*)(a + 10000))[i] = i;
  }
}
CASE(loop_backwards_copy, 5) {
  const int n = thousand;
#pragma clang loop vectorize(disable)
  for (int i = n - 1; i >= 0; --i) a[i + 1] = a[i];
}
CASE(loop_string, 1) {
  const char* from = "a string of some length, copied byte by byte";
  char* to = a + 3;
  while ((*to++ = *from++) != 0) {
  }
}
CASE(loop_string_append, 2) {
  const char* from = "appended to what is there";
  strcpy(a + 3, "what is there");
  char* to = a + 3;
  while (*to != 0) to++;
  while ((*to++ = *from++) != 0) {
  }
}
CASE(loop_of_appends, 0) {
  char* to = a;
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    const char* from = "some more";
    while (*from != 0) *to++ = *from++;
    *to = (char)i;
    while (to != a && to[-1] == 'e') --to;
  }
}
CASE(loop_left_early, 1) {
  const int n = thousand;
  const char* from = a + 8000;
  for (int i = 0; i < n; ++i) {
    if (from[i] == (char)0xd0) break;
    a[i] = (char)(from[i] + 1);
  }
}
CASE(loop_left_late, 1) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(a[i] + 1);
    if (a[i] == (char)0x10) break;
  }
}
CASE(loop_of_many_exits, 0) {
  const int n = thousand;
  int i = 0;
  for (; i < n; ++i) {
    if (a[i + 7000] == (char)0xd0) goto first;
    a[i] = 1;
    if (a[i + 9000] == (char)0xd1) goto second;
  }
  a[20000] = 3;
  return;
first:
  a[20001] = 3;
  return;
second:
  a[20002] = 3;
}
CASE(loop_with_condition, 0) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) {
    if ((a[i + 5000] & 3) == 0) a[i] = 9;
  }
}
// A range is marked only where it was stored to.
CASE(loop_with_rare_stores, 0) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) {
    if (i % 100 == 17) ((volatile char*)a)[i] = 9;
  }
  for (int i = 0; i < n; ++i) {
    if (a[i + 2000] == 99) a[i] = (char)(i + 1);
  }
  expect(bytes_marked() < 100, "what a condition guards is marked one by one");
}
CASE(loop_with_gaps, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) *(long*)(a + 400 * i) = i + 1;
  expect(bytes_marked() <= 8UL * 100, "gaps of lines are not marked");
}
CASE(loop_left_at_once, 0) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(i + 3);
    if (i == 2) break;
  }
  expect(bytes_marked() <= 8, "a loop marks what it came to");
}
CASE(loop_with_continue, 0) {
  const int n = thousand;
  for (int i = 0; i < n; ++i) {
    if (i % 3 == 1) continue;
    a[i] = (char)i;
  }
}
CASE(loop_with_switch, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    switch (i % 5) {
      case 0:
        a[i] = 1;
        break;
      case 1:
        a[i + 1000] = 1;
        break;
      case 2:
        a[i] = 5;
        continue;
      case 3:
        if (i > 90) return;
        break;
      default:
        a[3] = 1;
    }
    a[5000 + i] = 2;
  }
}
CASE(loop_to_one_place, 4) {
  long* sum = (long*)a;
  const int n = thousand;
  for (int i = 0; i < n; ++i) *sum += ((long*)(a + 1024))[i];
}
CASE(loop_to_one_place_seldom, 0) {
  long* most = (long*)a;
  const int n = thousand;
  for (int i = 0; i < n; ++i) {
    if (((long*)(a + 1024))[i] > *most) *most = ((long*)(a + 1024))[i];
  }
}
CASE(loop_nested, 0) {
  const int rows = 20;
  const int columns = hundred;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) a[row * 1000 + column] = (char)(row + column);
    a[row * 1000 + 500] = 7;
  }
}
CASE(loop_nested_whole, 0) {
  const int n = 10 + none;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < n; ++k) ((int*)a)[(i * n + j) * n + k] += i * j * k + 1;
    }
  }
}
CASE(loop_triangular, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) a[i * 300 + j] = (char)j;
  }
}
CASE(loop_index_wraps, 0) {
  const int n = thousand;
  unsigned char i = 200;
  for (int turns = 0; turns < n; ++turns) a[i++] = (char)turns;
}
CASE(loop_random_places, 0) {
  const int n = thousand;
  unsigned x = 12345;
  for (int i = 0; i < n; ++i) {
    x = x * 1103515245 + 12345;
    a[x >> 20] = (char)x;
  }
}
CASE(loop_sorting, 0) {
  int* to = (int*)a;
  const int n = hundred;
  for (int i = 1; i < n; ++i) {
    const int value = to[i];
    int j = i;
    for (; j > 0 && to[j - 1] > value; --j) to[j] = to[j - 1];
    to[j] = value;
  }
}
CASE(loop_do_while, 3) {
  int i = 0;
  const int n = thousand;
  do {
    a[i] = (char)(i ^ 5);
  } while (++i < n);
}
CASE(loop_unrolled, 3) {
  const int n = thousand;
#pragma clang loop unroll_count(4) vectorize(disable)
  for (int i = 0; i < n; ++i) ((int*)a)[i] = i ^ 0x55;
}
CASE(loop_by_goto, 3) {
  int i = 0;
  const int n = thousand;
again:
  if (i >= n) return;
  a[i] ^= (char)i;
  i++;
  goto again;
}

// ------------------------------------------------- what a commit in the middle of a loop must see

CASE(loop_with_commits, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(i + 1);
    collect();
  }
}
CASE(loop_with_some_commits, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(i + 1);
    if (i % 10 == 3) collect();
    a[i + 1000] = (char)(i + 3);
  }
}
static void* volatile some_function = (void*)collect;
CASE(loop_with_indirect_commits, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    ((int*)a)[i] = i + 1;
    ((void (*)(void))some_function)();
  }
}
CASE(loop_around_loop_with_commits, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(i + 1);
    for (int j = 0; j < 5; ++j) {
      a[1000 + j] = (char)(i * j + 1);
      collect();
    }
  }
}
CASE(commit_after_loop, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) a[i] = (char)(i + 1);
  collect();
  for (int i = 0; i < n; ++i) a[i] = (char)(i + 2);
  collect();
}
__attribute__((noinline)) static void recursive(char* to, int depth) {
  for (int i = 0; i < 4; ++i) {
    to[i] = (char)(depth + i);
    if (depth > 0) recursive(to + 100 * (i + 1), depth - 1);
    to[i + 8] = (char)(depth + i);
    collect();
  }
}
CASE(loop_with_recursion, 0) { recursive(a, 3); }
CASE(loop_with_atomics, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(i + 1);
    atomic_fetch_add((_Atomic int*)(a + 4096), 1);
  }
}
CASE(loop_with_fence, 0) {
  const int n = hundred;
  for (int i = 0; i < n; ++i) {
    a[i] = (char)(i + 1);
    atomic_thread_fence(memory_order_release);
  }
}
