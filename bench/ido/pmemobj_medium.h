/* The memory of the pool, as slow as the environment says it is to Pawl. */
#ifndef PAWL_BENCH_IDO_PMEMOBJ_MEDIUM_H
#define PAWL_BENCH_IDO_PMEMOBJ_MEDIUM_H

#ifdef __cplusplus
extern "C" {
#endif

/* PAWL_EMULATE_LINE_NS and PAWL_EMULATE_FENCE_NS hold from now on. */
void pmemobj_medium_begin(void);

#ifdef __cplusplus
}
#endif
#endif
