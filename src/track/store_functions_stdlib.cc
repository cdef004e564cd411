// pawl_stored_*: <stdlib.h>, <search.h>, <getopt.h>, <inttypes.h>, and <math.h>.
#include "track/store_functions.h"

#include <getopt.h>
#include <search.h>

#include <cinttypes>
#include <climits>
#include <cmath>
#include <cstdlib>

using pawl::stored::mark;
using pawl::stored::mark_array;
using pawl::stored::mark_bytes;
using pawl::stored::mark_string;
using pawl::stored::product;

extern "C" {
char* __realpath_chk(const char*, char*, size_t);
int __ptsname_r_chk(int, char*, size_t, size_t);
}

// Sorting: also when a comparison throws, or leaves by longjmp().
namespace {

class MarkedAround {
 public:
  MarkedAround(const void* at, size_t count) : at_(at), count_(count) { mark_bytes(at, count); }
  ~MarkedAround() { mark_bytes(at_, count_); }
  MarkedAround(const MarkedAround&) = delete;
  MarkedAround& operator=(const MarkedAround&) = delete;

 private:
  const void* const at_;
  const size_t count_;
};

}  // namespace

extern "C" PAWL_PUBLIC void pawl_stored_qsort(void* first, size_t count, size_t size,
                                              int (*compare)(const void*, const void*)) {
  const MarkedAround marked(first, product(count, size));
  qsort(first, count, size, compare);
}
extern "C" PAWL_PUBLIC void pawl_stored_qsort_r(void* first, size_t count, size_t size,
                                                int (*compare)(const void*, const void*, void*),
                                                void* context) {
  const MarkedAround marked(first, product(count, size));
  qsort_r(first, count, size, compare, context);
}

// Numbers: where they end.  The functions of C23 are of C libraries from 2.38 on.

#define PAWL_STORED_REAL(name, type, character) \
  PAWL_STORED(type, name, (const character* from, character** end), (from, end), mark(end)); \
  PAWL_STORED(type, name##_l, (const character* from, character** end, locale_t locale), \
              (from, end, locale), mark(end))
PAWL_STORED_REAL(strtof, float, char);
PAWL_STORED_REAL(strtod, double, char);
PAWL_STORED_REAL(strtold, long double, char);
PAWL_STORED_REAL(wcstof, float, wchar_t);
PAWL_STORED_REAL(wcstod, double, wchar_t);
PAWL_STORED_REAL(wcstold, long double, wchar_t);

#define PAWL_STORED_INTEGER(name, type, character) \
  PAWL_STORED(type, name, (const character* from, character** end, int base), (from, end, base), \
              mark(end))
#define PAWL_STORED_C23_INTEGER(name, type, character) \
  extern "C" __attribute__((weak)) type __isoc23_##name(const character*, character**, int); \
  PAWL_STORED_INTEGER(__isoc23_##name, type, character)
#define PAWL_STORED_INTEGER_TOO(name, type, character) \
  PAWL_STORED_INTEGER(name, type, character); \
  PAWL_STORED_C23_INTEGER(name, type, character)
#define PAWL_STORED_LOCAL_INTEGER(name, type, character) \
  PAWL_STORED(type, name##_l, (const character* from, character** end, int base, locale_t locale), \
              (from, end, base, locale), mark(end))
PAWL_STORED_INTEGER_TOO(strtol, long, char);
PAWL_STORED_INTEGER_TOO(strtoul, unsigned long, char);
PAWL_STORED_INTEGER_TOO(strtoll, long long, char);
PAWL_STORED_INTEGER_TOO(strtoull, unsigned long long, char);
PAWL_STORED_INTEGER_TOO(strtoimax, intmax_t, char);
PAWL_STORED_INTEGER_TOO(strtoumax, uintmax_t, char);
PAWL_STORED_INTEGER(strtoq, long long, char);
PAWL_STORED_INTEGER(strtouq, unsigned long long, char);
PAWL_STORED_INTEGER_TOO(wcstol, long, wchar_t);
PAWL_STORED_INTEGER_TOO(wcstoul, unsigned long, wchar_t);
PAWL_STORED_INTEGER_TOO(wcstoll, long long, wchar_t);
PAWL_STORED_INTEGER_TOO(wcstoull, unsigned long long, wchar_t);
PAWL_STORED_INTEGER_TOO(wcstoimax, intmax_t, wchar_t);
PAWL_STORED_INTEGER_TOO(wcstoumax, uintmax_t, wchar_t);
PAWL_STORED_LOCAL_INTEGER(strtol, long, char);
PAWL_STORED_LOCAL_INTEGER(strtoul, unsigned long, char);
PAWL_STORED_LOCAL_INTEGER(strtoll, long long, char);
PAWL_STORED_LOCAL_INTEGER(strtoull, unsigned long long, char);
PAWL_STORED_INTEGER(wcstoq, long long, wchar_t);
PAWL_STORED_INTEGER(wcstouq, unsigned long long, wchar_t);
PAWL_STORED_LOCAL_INTEGER(wcstol, long, wchar_t);
PAWL_STORED_LOCAL_INTEGER(wcstoul, unsigned long, wchar_t);
PAWL_STORED_LOCAL_INTEGER(wcstoll, long long, wchar_t);
PAWL_STORED_LOCAL_INTEGER(wcstoull, unsigned long long, wchar_t);

PAWL_STORED(int, strfromf, (char* to, size_t size, const char* format, float value),
            (to, size, format, value),
            mark_bytes(to, std::min(static_cast<size_t>(result) + 1, size)));
PAWL_STORED(int, strfromd, (char* to, size_t size, const char* format, double value),
            (to, size, format, value),
            mark_bytes(to, std::min(static_cast<size_t>(result) + 1, size)));
PAWL_STORED(int, strfroml, (char* to, size_t size, const char* format, long double value),
            (to, size, format, value),
            mark_bytes(to, std::min(static_cast<size_t>(result) + 1, size)));
#define PAWL_STORED_DIGITS(name, type) \
  PAWL_STORED(int, name, (type value, int digits, int* point, int* sign, char* to, size_t size), \
              (value, digits, point, sign, to, size), mark(point); \
              mark(sign); mark_string(to, size))
PAWL_STORED_DIGITS(ecvt_r, double);
PAWL_STORED_DIGITS(fcvt_r, double);
PAWL_STORED_DIGITS(qecvt_r, long double);
PAWL_STORED_DIGITS(qfcvt_r, long double);

PAWL_STORED(char*, gcvt, (double value, int digits, char* to), (value, digits, to),
            mark_string(to));
PAWL_STORED(char*, qgcvt, (long double value, int digits, char* to), (value, digits, to),
            mark_string(to));

// Of C libraries from 2.36 on.
// NOLINTNEXTLINE(readability-redundant-declaration)
extern "C" __attribute__((weak)) void arc4random_buf(void*, size_t) noexcept;
PAWL_STORED_NOTHING(arc4random_buf, (void* to, size_t count), (to, count), mark_bytes(to, count));
PAWL_STORED(int, rand_r, (unsigned* state), (state), mark(state));
PAWL_STORED(double, erand48, (unsigned short state[3]), (state), mark_array(state, 3));
PAWL_STORED(long, nrand48, (unsigned short state[3]), (state), mark_array(state, 3));
PAWL_STORED(long, jrand48, (unsigned short state[3]), (state), mark_array(state, 3));
PAWL_STORED(int, drand48_r, (drand48_data * state, double* to), (state, to), mark(state); mark(to));
PAWL_STORED(int, lrand48_r, (drand48_data * state, long* to), (state, to), mark(state); mark(to));
PAWL_STORED(int, mrand48_r, (drand48_data * state, long* to), (state, to), mark(state); mark(to));
PAWL_STORED(int, erand48_r, (unsigned short own[3], drand48_data* state, double* to),
            (own, state, to), mark_array(own, 3);
            mark(state); mark(to));
PAWL_STORED(int, nrand48_r, (unsigned short own[3], drand48_data* state, long* to),
            (own, state, to), mark_array(own, 3);
            mark(state); mark(to));
PAWL_STORED(int, jrand48_r, (unsigned short own[3], drand48_data* state, long* to),
            (own, state, to), mark_array(own, 3);
            mark(state); mark(to));
PAWL_STORED(int, srand48_r, (long seed, drand48_data* state), (seed, state), mark(state));
PAWL_STORED(int, seed48_r, (unsigned short seed[3], drand48_data* state), (seed, state),
            mark(state));
PAWL_STORED(int, lcong48_r, (unsigned short parameters[7], drand48_data* state),
            (parameters, state), mark(state));

// Names.

PAWL_STORED(int, mkstemp, (char* name), (name), mark_string(name));
PAWL_STORED(int, mkstemp64, (char* name), (name), mark_string(name));
PAWL_STORED(int, mkstemps, (char* name, int suffix), (name, suffix), mark_string(name));
PAWL_STORED(int, mkstemps64, (char* name, int suffix), (name, suffix), mark_string(name));
PAWL_STORED(int, mkostemp, (char* name, int flags), (name, flags), mark_string(name));
PAWL_STORED(int, mkostemp64, (char* name, int flags), (name, flags), mark_string(name));
PAWL_STORED(int, mkostemps, (char* name, int suffix, int flags), (name, suffix, flags),
            mark_string(name));
PAWL_STORED(int, mkostemps64, (char* name, int suffix, int flags), (name, suffix, flags),
            mark_string(name));
PAWL_STORED(char*, mkdtemp, (char* name), (name), mark_string(name));
PAWL_STORED(char*, realpath, (const char* path, char* to), (path, to),
            if (result == nullptr) mark_bytes(to, PATH_MAX);
            else mark_string(to));
PAWL_STORED(char*, __realpath_chk, (const char* path, char* to, size_t room), (path, to, room),
            if (result == nullptr) mark_bytes(to, PATH_MAX);
            else mark_string(to));
PAWL_STORED(int, ptsname_r, (int descriptor, char* to, size_t size), (descriptor, to, size),
            mark_string(to, size));
PAWL_STORED(int, __ptsname_r_chk, (int descriptor, char* to, size_t size, size_t room),
            (descriptor, to, size, room), mark_string(to, size));
// A zero behind the option, where a comma was.
PAWL_STORED(int, getsubopt, (char** option, char* const* tokens, char** value),
            (option, tokens, value), mark(option);
            mark(value); mark_bytes(*option - 1, 1));
PAWL_STORED(int, getopt_long,
            (int count, char* const* arguments, const char* letters, const option* options,
             int* index),
            (count, arguments, letters, options, index), mark(index);
            mark_array(arguments, static_cast<size_t>(count)));
PAWL_STORED(int, getopt_long_only,
            (int count, char* const* arguments, const char* letters, const option* options,
             int* index),
            (count, arguments, letters, options, index), mark(index);
            mark_array(arguments, static_cast<size_t>(count)));
PAWL_STORED(int, getopt, (int count, char* const* arguments, const char* letters),
            (count, arguments, letters), mark_array(arguments, static_cast<size_t>(count)));
PAWL_STORED(int, posix_memalign, (void** to, size_t alignment, size_t size), (to, alignment, size),
            mark(to));
PAWL_STORED(int, getloadavg, (double* to, int count), (to, count),
            if (result > 0) mark_array(to, static_cast<size_t>(result)));

// Searching.

extern "C" PAWL_PUBLIC void* pawl_stored_lsearch(const void* key, void* first, size_t* count,
                                                 size_t size,
                                                 int (*compare)(const void*, const void*)) {
  const size_t before = *count;
  void* const result = lsearch(key, first, count, size, compare);
  if (*count != before) {
    mark_bytes(result, size);
    mark(count);
  }
  return result;
}
PAWL_STORED(void*, tsearch,
            (const void* key, void** root, int (*compare)(const void*, const void*)),
            (key, root, compare), mark(root));
PAWL_STORED(void*, tdelete,
            (const void* key, void** root, int (*compare)(const void*, const void*)),
            (key, root, compare), mark(root));
PAWL_STORED(int, hsearch_r, (ENTRY item, ACTION action, ENTRY** to, hsearch_data* table),
            (item, action, to, table), mark(to);
            mark(table));
PAWL_STORED(int, hcreate_r, (size_t count, hsearch_data* table), (count, table), mark(table));
PAWL_STORED_NOTHING(hdestroy_r, (hsearch_data * table), (table), mark(table));

namespace {

// What insque() and remque() take for an element.
struct Element {
  Element* next;
  Element* previous;
};
void mark_element(const Element* element) { mark(element); }

}  // namespace

extern "C" PAWL_PUBLIC void pawl_stored_insque(void* element, void* behind) {
  insque(element, behind);
  auto* const added = static_cast<Element*>(element);
  mark_element(added);
  mark_element(added->next);
  mark_element(added->previous);
}
extern "C" PAWL_PUBLIC void pawl_stored_remque(void* element) {
  auto* const removed = static_cast<Element*>(element);
  remque(element);
  mark_element(removed);
  mark_element(removed->next);
  mark_element(removed->previous);
}

// Mathematics.

#define PAWL_STORED_PART(name, type, part) \
  PAWL_STORED(type, name, (type value, part * to), (value, to), mark(to))
PAWL_STORED_PART(frexp, double, int);
PAWL_STORED_PART(frexpf, float, int);
PAWL_STORED_PART(frexpl, long double, int);
PAWL_STORED_PART(modf, double, double);
PAWL_STORED_PART(modff, float, float);
PAWL_STORED_PART(modfl, long double, long double);
