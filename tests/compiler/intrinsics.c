// The functions of intrinsics.ll, one case each.
#include "cases.h"

typedef int int8 __attribute__((vector_size(32)));

void masked_store_bits(char* to, unsigned char bits);
void scatter_bits(char* to, unsigned char bits);
void compress_bits(char* to, unsigned char bits);
void element_copy(void* to, const void* from, long length);
void element_move(void* to, const void* from, long length);
void element_set(void* to, char byte, long length);
void set_inline(char* to, char byte);
void set_volatile(char* to, char byte);
void copy_short_length(char* to, const char* from, unsigned length);
void odd_integers(char* to, long value);
void aggregate(char* to, long value);
void other_space(char* to, long value);
float atomic_float(char* to, float value);
void unordered(char* to, long value);

static volatile unsigned char bits = 0xa7;
static volatile long count = 44;
static int numbers[100] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};

CASE(masked, 1) { masked_store_bits(a + 12, bits); }
CASE(masked_none, 1) { masked_store_bits(a + 12, bits & 0); }
CASE(scattered, 8) { scatter_bits(a + 3, bits); }
CASE(compressed, 1) { compress_bits(a + 4, bits); }
CASE(element_wise_copy, 1) { element_copy(a + 4, numbers, count); }
CASE(element_wise_move, 1) { element_move(a + 4, a + 16, count); }
CASE(element_wise_set, 1) { element_set(a + 4, 0x6b, count); }
CASE(inline_set, 1) { set_inline(a + 4, 0x6b); }
CASE(volatile_set, 1) { set_volatile(a + 4, 0x6b); }
CASE(short_length, 1) { copy_short_length(a + 9, (const char*)numbers, 33); }
CASE(odd_integer_types, 0) { odd_integers(a + 3, 0x7edcba987654321f); }
CASE(aggregate_value, 1) { aggregate(a + 3, 0x7edcba987654321f); }
CASE(other_address_space, 1) { other_space(a + 8, 77); }
CASE(atomic_floats, 0) { atomic_float(a + 8, 2.5f); }
CASE(unordered_store, 0) { unordered(a + 8, 77); }
