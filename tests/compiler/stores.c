// Every way in which C writes memory, one case each.
#define _GNU_SOURCE
#include <immintrin.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"

// ------------------------------------------------------------------------------ plain stores

CASE(store_1, 1) { a[5] = 'x'; }
CASE(store_2, 1) { *(short*)(a + 6) = 0x1234; }
CASE(store_4, 1) { *(int*)(a + 8) = 0x12345678; }
CASE(store_8, 1) { *(long*)(a + 16) = 0x123456789abcdef0; }
CASE(store_16, 1) { *(__int128*)(a + 32) = ((__int128)0x1234567812345678 << 64) | 0x5a5a5a5a; }
CASE(store_float, 1) { *(float*)a = 1.5f; }
CASE(store_double, 1) { *(double*)a = 2.5; }
CASE(store_long_double, 1) { *(long double*)(a + 16) = 3.25L; }
CASE(store_complex, 1) { *(_Complex double*)(a + 16) = 3.25; }
CASE(store_bool, 1) { *(_Bool*)a = marks_made() == 0; }
CASE(store_volatile, 1) { *(volatile int*)(a + 4) = 77; }
CASE(store_nontemporal, 1) { __builtin_nontemporal_store(12345L, (long*)(a + 64)); }

struct __attribute__((packed)) unaligned {
  char head;
  int number;
  long wide;
};
CASE(store_unaligned, 1) {
  struct unaligned* u = (struct unaligned*)(a + 61);
  u->number = 0x1234567;
  u->wide = -2;
}

struct bits {
  unsigned low : 3, middle : 13, high : 16;
  unsigned long more : 37;
};
CASE(store_bit_field, 1) {
  struct bits* b = (struct bits*)a;
  b->middle = 0x155;
  b->more = 0x123456789;
}

CASE(store_near_each_other, 1) {
  a[64] = 1;
  a[70] = 2;
  *(long*)(a + 80) = 3;
  *(int*)(a + 100) = 4;
}
CASE(store_far_from_each_other, 2) {
  a[64] = 1;
  a[4096] = 2;
}
CASE(store_downwards, 1) {
  a[300] = 1;
  a[290] = 2;
  a[260] = 3;
}

// ----------------------------------------------------------------------------------- vectors

typedef int int4 __attribute__((vector_size(16)));
typedef int int8 __attribute__((vector_size(32)));
typedef long long8 __attribute__((vector_size(64)));
typedef int loose_int8 __attribute__((vector_size(32), aligned(1)));
typedef char char3 __attribute__((ext_vector_type(3)));

CASE(vector_16, 1) { *(int4*)(a + 16) = (int4){1, 2, 3, 4}; }
CASE(vector_32, 1) { *(int8*)(a + 32) = (int8){1, 2, 3, 4, 5, 6, 7, 8}; }
CASE(vector_64, 1) { *(long8*)(a + 64) = (long8){1, 2, 3, 4, 5, 6, 7, 8}; }
CASE(vector_unaligned, 1) { *(loose_int8*)(a + 51) = (loose_int8){1, 2, 3, 4, 5, 6, 7, 8}; }
CASE(vector_of_3, 1) { *(char3*)(a + 4) = (char3){1, 2, 3}; }
CASE(vector_masked_bytes, 2) {
  _mm_maskmoveu_si128(_mm_set1_epi8(9), _mm_set_epi32(-1, 0, 0x80, -1), a + 13);
}
CASE(vector_streamed, 1) { _mm_stream_si128((__m128i*)(a + 32), _mm_set1_epi32(0x1020304)); }

__attribute__((target("avx2"))) static void masked_avx2(char* a) {
  _mm256_maskstore_epi32((int*)(a + 3), _mm256_set_epi32(-1, 0, -1, 0, 0, -1, -1, 0),
                         _mm256_set1_epi32(0x11223344));
}
CASE(vector_masked_avx2, 1) {
  if (__builtin_cpu_supports("avx2")) masked_avx2(a);
}

__attribute__((target("avx512f"))) static void masked_avx512(char* a) {
  _mm512_mask_storeu_epi32(a + 5, 0x5a5a, _mm512_set1_epi32(0x11223344));
  _mm512_mask_compressstoreu_epi32(a + 1000, 0x1234, _mm512_set1_epi32(0x55667788));
  _mm512_mask_cvtepi64_storeu_epi8(a + 2000, 0xa5, _mm512_set1_epi64(0x42));
}
CASE(vector_masked_avx512, 0) {
  if (__builtin_cpu_supports("avx512f")) masked_avx512(a);
}
__attribute__((target("avx512f"))) static void scatter_avx512(char* a) {
  const __m512i spread =
      _mm512_set_epi32(0, 9, 500, 33, 4, 1000, 77, 78, 2, 3000, 11, 12, 13, 14, 15, 99);
  _mm512_mask_i32scatter_epi32(a + 4, 0xf0f3, spread, _mm512_set1_epi32(0x31323334), 4);
  const __m512i far = _mm512_set_epi64(100, 5, 700, 2, 900, 4, 40, 1);
  _mm512_i64scatter_epi64(a + 8192, far, _mm512_set1_epi64(0x3132333435363738), 8);
  _mm512_mask_i64scatter_ps(a + 30000, 0x3c, far, _mm256_set1_ps(2.5f), 4);
}
CASE(vector_scatter_avx512, 0) {
  if (__builtin_cpu_supports("avx512f")) scatter_avx512(a);
}
CASE(processor_state, 0) { __builtin_ia32_fxsave(a + 512); }

// ----------------------------------------------------------------------------------- atomics

CASE(atomic_stores, 0) {
  __atomic_store_n(a + 1, 5, __ATOMIC_RELAXED);
  __atomic_store_n((short*)(a + 2), 5, __ATOMIC_RELEASE);
  __atomic_store_n((int*)(a + 4), 5, __ATOMIC_SEQ_CST);
  atomic_store((_Atomic long*)(a + 8), 5);
}
CASE(atomic_updates, 0) {
  atomic_fetch_add((_Atomic int*)(a + 4), 3);
  atomic_fetch_sub((_Atomic long*)(a + 8), 3);
  atomic_fetch_or((_Atomic char*)(a + 16), 0x13);
  atomic_fetch_and((_Atomic short*)(a + 18), 0x1111);
  atomic_fetch_xor((_Atomic unsigned*)(a + 20), 0x1111);
  __atomic_fetch_nand((int*)(a + 24), 0x3, __ATOMIC_RELAXED);
  atomic_exchange((_Atomic int*)(a + 28), 0x77);
  __sync_fetch_and_add((long*)(a + 32), 1);
}
CASE(atomic_compare_exchange, 0) {
  int expected = *(int*)(a + 4);
  atomic_compare_exchange_strong((_Atomic int*)(a + 4), &expected, 99);
  long* const expectation = (long*)(a + 128);  // written when it is wrong
  *expectation = 12345;
  atomic_compare_exchange_strong((_Atomic long*)(a + 64), expectation, 7);
}
CASE(atomic_flags, 0) {
  atomic_flag_test_and_set((atomic_flag*)(a + 9));
  __atomic_clear(a + 10, __ATOMIC_RELEASE);
}
struct odd {
  char bytes[7];
};
struct wide {
  long words[4];
};
CASE(atomic_objects, 0) {  // libatomic's functions
  const struct wide value = {{1, 2, 3, 4}};
  const struct wide other = {{5, 6, 7, 8}};
  struct wide got;
  atomic_store((_Atomic struct wide*)(a + 64), value);
  __atomic_load((struct wide*)(a + 64), (struct wide*)(a + 256), __ATOMIC_SEQ_CST);
  got = atomic_exchange((_Atomic struct wide*)(a + 64), other);
  opaque(&got);
  __atomic_exchange((struct wide*)(a + 64), &got, (struct wide*)(a + 512), __ATOMIC_SEQ_CST);
  *(struct wide*)(a + 1024) = other;
  __atomic_compare_exchange((struct wide*)(a + 64), (struct wide*)(a + 1024), &got, 0,
                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
CASE(atomic_16, 0) {
  __int128* const number = (__int128*)(a + 64);
  __atomic_store_n(number, (__int128)5 << 64, __ATOMIC_SEQ_CST);
  __int128 expected = *number;
  __atomic_compare_exchange_n(number, &expected, expected + 77, 0, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
}

// ------------------------------------------------------------------------- copies and structs

static const char* source_bytes(void) {
  static char bytes[8192];
  if (bytes[1] == 0) {
    for (int i = 0; i < 8192; ++i) bytes[i] = (char)(i * 13 + 1);
  }
  return bytes;
}

#define COPY_OF(n) \
  CASE(copy_##n, 1) { memcpy(a + 3, source_bytes(), n); }
COPY_OF(1)
COPY_OF(3)
COPY_OF(7)
COPY_OF(8)
COPY_OF(15)
COPY_OF(16)
COPY_OF(33)
COPY_OF(64)
COPY_OF(129)
COPY_OF(4096)

static volatile size_t some_length = 777;
static volatile size_t no_length = 0;
CASE(copy_of_some_length, 1) { memcpy(a + 5, source_bytes(), some_length); }
CASE(copy_of_no_length, 1) { memcpy(a + 5, source_bytes(), no_length); }
CASE(copy_inline, 1) { __builtin_memcpy_inline(a + 3, source_bytes(), 77); }
CASE(move_overlapping, 1) { memmove(a + 100, a + 90, some_length); }
CASE(move_small, 1) { memmove(a + 4, a + 2, 11); }
CASE(set_small, 1) { memset(a + 1, 0x5b, 13); }
CASE(set_large, 1) { memset(a + 1, 0x5b, 5000); }
CASE(set_some_length, 1) { memset(a + 7, 0x5b, some_length); }
CASE(set_zero, 1) { memset(a, 0, 200); }
CASE(copy_and_return, 1) { opaque(mempcpy(a + 9, source_bytes(), some_length)); }
CASE(set_by_bzero, 1) { explicit_bzero(a + 9, some_length); }

struct odd_sized {
  char bytes[21];
};
struct mixed {
  char tag;
  double number;
  short rest[5];
  struct odd_sized odd;
};
CASE(struct_copy_odd, 1) { *(struct odd_sized*)(a + 1) = *(const struct odd_sized*)source_bytes(); }
CASE(struct_copy_mixed, 1) { *(struct mixed*)(a + 8) = *(const struct mixed*)source_bytes(); }
CASE(struct_copy_large, 1) {
  struct page {
    char bytes[3000];
  };
  *(struct page*)(a + 8) = *(const struct page*)source_bytes();
}
CASE(struct_literal, 1) { *(struct mixed*)a = (struct mixed){.tag = 3, .number = 2.5}; }

__attribute__((noinline)) static struct mixed make_mixed(char tag) {
  struct mixed made = *(const struct mixed*)source_bytes();
  made.tag = tag;
  return made;
}
CASE(struct_returned, 2) { *(struct mixed*)(a + 8) = make_mixed(4); }
CASE(struct_returned_by_others, 2) { *(struct large*)(a + 8) = make_large(5); }

__attribute__((noinline)) static void by_value(struct mixed value, char* to) {
  value.tag = 9;
  value.odd.bytes[3] = 1;
  *(struct mixed*)to = value;
}
CASE(struct_by_value, 1) { by_value(*(const struct mixed*)source_bytes(), a + 64); }

CASE(union_store, 1) {
  union both {
    long number;
    char bytes[24];
  }* u = (union both*)(a + 8);
  u->number = 3;
  u->bytes[17] = 4;
}

// --------------------------------------------------------------------------------- arguments

struct state {
  va_list arguments;
  va_list copy;
};
static long sum_of(struct state* state, int count, ...) {
  long sum = 0;
  va_start(state->arguments, count);
  collect();
  va_copy(state->copy, state->arguments);
  collect();
  for (int i = 0; i < count; ++i) {
    sum += va_arg(state->arguments, long);
    collect();
  }
  sum += va_arg(state->copy, long);
  collect();
  va_end(state->copy);
  va_end(state->arguments);
  return sum;
}
CASE(variable_arguments, 0) {
  *(long*)(a + 512) = sum_of((struct state*)a, 8, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L);
}
CASE(jump_buffer, 0) {
  jmp_buf* const buffer = (jmp_buf*)a;
  if (setjmp(*buffer) == 0) {
    collect();
    a[1000] = 5;
    longjmp(*buffer, 1);
  }
  collect();
}
static jmp_buf outside;
CASE(store_before_jump, 0) {
  if (setjmp(outside) == 0) {
    a[1000] = 5;
    longjmp(outside, 1);
  }
  collect();
}

// ----------------------------------------------------------------------- libraries' functions

typedef void* copier(void*, const void*, size_t);
static copier* volatile copy = memcpy;
CASE(function_by_address, 1) { copy(a + 7, source_bytes(), 99); }
static void* (*const setters[])(void*, int, size_t) = {memset, memset};
CASE(function_in_table, 1) { setters[some_length & 1](a + 7, 3, 99); }

CASE(string_copy, 1) { strcpy(a + 3, source_bytes() + 8000); }
CASE(string_print, 2) { snprintf(a + 3, 100, "%zu and %s", some_length, "more"); }
static int by_number(const void* left, const void* right) {
  return *(const int*)left < *(const int*)right ? -1 : 1;
}
CASE(sort, 0) {
  for (int i = 0; i < 100; ++i) ((int*)a)[i] = (i * 7919) % 101;
  qsort(a, 100, sizeof(int), by_number);
}
CASE(system_call, 0) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  if (write(ends[1], "written", 7) != 7 || read(ends[0], a + 11, 100) != 7) abort();
  close(ends[0]);
  close(ends[1]);
}
__attribute__((noinline)) static void* tail_called(char* to) {
  return memcpy(to, source_bytes(), some_length);
}
CASE(tail_call, 1) { opaque(tail_called(a + 64)); }
__attribute__((noinline)) static void* must_be_tail_called(void* to, const void* from, size_t n) {
  __attribute__((musttail)) return memcpy(to, from, n);
}
CASE(must_tail_call, 1) { opaque(must_be_tail_called(a + 64, source_bytes(), some_length)); }

// ---------------------------------------------------------------------------------- assembly

CASE(assembly_output, 0) {
  __asm__ volatile("movl $7, %0" : "=m"(*(int*)(a + 8)));
  __asm__ volatile("lock; incq %0" : "+m"(*(long*)(a + 64)));
}
CASE(assembly_barrier, 0) {
  a[1] = 1;
  __asm__ volatile("" ::: "memory");
  a[2] = 2;
}

// ----------------------------------------------------------------------------- control of flow

CASE(store_in_branches, 1) {
  if (some_length > 5) {
    a[5] = 1;
  } else {
    a[4000] = 1;
  }
}
CASE(commit_between, 0) {
  a[5] = 1;
  collect();
  a[6] = 2;
  a[7] = 3;
  collect();
  a[5] = 4;
  collect();
}
CASE(pointer_of_two_kinds, 0) {  // the stack or the arena
  char here[64];
  char* to = some_length > 5 ? a + 64 : here;
  memset(to, 4, 20);
  opaque(here);
}
CASE(pointer_from_memory, 1) {
  char* volatile kept = a + 100;
  *kept = 3;
}
struct element {
  struct element *next, *previous;
  long value;
};
CASE(linked_list, 0) {
  struct element* head = (struct element*)a;
  head->next = head->previous = head;
  for (int i = 1; i < 20; ++i) {
    struct element* e = (struct element*)(a + i * 1000);
    e->value = i;
    e->next = head->next;
    e->previous = head;
    head->next->previous = e;
    head->next = e;
    collect();
  }
  for (struct element* e = head->next; e != head; e = e->next) e->value++;
}
