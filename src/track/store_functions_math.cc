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

#define PAWL_STORED_CANONICAL(name, type) \
  PAWL_STORED(int, name, (type * to, const type* from), (to, from), mark(to))
PAWL_STORED_CANONICAL(canonicalize, double);
PAWL_STORED_CANONICAL(canonicalizef, float);
PAWL_STORED_CANONICAL(canonicalizel, long double);

#define PAWL_STORED_PAYLOAD(name, type) \
  PAWL_STORED(int, name, (type * to, type payload), (to, payload), mark(to))
PAWL_STORED_PAYLOAD(setpayload, double);
PAWL_STORED_PAYLOAD(setpayloadf, float);
PAWL_STORED_PAYLOAD(setpayloadl, long double);
PAWL_STORED_PAYLOAD(setpayloadsig, double);
PAWL_STORED_PAYLOAD(setpayloadsigf, float);
PAWL_STORED_PAYLOAD(setpayloadsigl, long double);
