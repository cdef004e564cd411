// pawl_stored_*: the functions of <math.h> that are in libm only, and write through pointers.
#include "track/store_functions.h"

#include <cmath>

using pawl::stored::mark;

#define PAWL_STORED_SPLIT(name, type) \
  PAWL_STORED_NOTHING(name, (type value, type * sine, type * cosine), (value, sine, cosine), \
                      mark(sine); \
                      mark(cosine))
PAWL_STORED_SPLIT(sincos, double);
PAWL_STORED_SPLIT(sincosf, float);
PAWL_STORED_SPLIT(sincosl, long double);

#define PAWL_STORED_QUOTIENT(name, type) \
  PAWL_STORED(type, name, (type value, type by, int* to), (value, by, to), mark(to))
PAWL_STORED_QUOTIENT(remquo, double);
PAWL_STORED_QUOTIENT(remquof, float);
PAWL_STORED_QUOTIENT(remquol, long double);

#define PAWL_STORED_SIGN(name, type) \
  PAWL_STORED(type, name, (type value, int* to), (value, to), mark(to))
PAWL_STORED_SIGN(lgamma_r, double);
PAWL_STORED_SIGN(lgammaf_r, float);
PAWL_STORED_SIGN(lgammal_r, long double);
