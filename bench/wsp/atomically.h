/* How an operation is made failure-atomic, which is the compiler's part:
 *   BENCH_TRANSACTIONS  gcc -fgnu-tm: a transaction
 *   BENCH_SECTIONS      pawl-clang -fpawl=undo: a failure-atomic section
 *   neither             not at all, or by whom calls it */
#ifndef PAWL_BENCH_WSP_ATOMICALLY_H
#define PAWL_BENCH_WSP_ATOMICALLY_H

#ifdef BENCH_SECTIONS
#include <pawl/fase.h>
#define ATOMICALLY(statement) \
  do { \
    pawl_fase_begin(); \
    statement; \
    pawl_fase_end(); \
  } while (0)
#elif defined(BENCH_TRANSACTIONS)
#define ATOMICALLY(statement) \
  do { \
    __transaction_atomic { statement; } \
  } while (0)
#else
#define ATOMICALLY(statement) \
  do { \
    statement; \
  } while (0)
#endif

#endif
