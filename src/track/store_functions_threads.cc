// pawl_stored_*: <pthread.h>, <semaphore.h> and <threads.h>, whose objects may stand in a mapping.
// Another thread may have the object, and commit it, before such a call is over: hence the marks
// before it.
#include "track/store_functions.h"

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

using pawl::stored::mark;
using pawl::stored::mark_bytes;
using pawl::stored::mark_string;

#define PAWL_STORED_OBJECT(name, parameters, arguments) \
  PAWL_STORED_AROUND(int, name, parameters, arguments, mark(object))

PAWL_STORED_OBJECT(pthread_mutex_init,
                   (pthread_mutex_t * object, const pthread_mutexattr_t* attributes),
                   (object, attributes));
PAWL_STORED_OBJECT(pthread_mutex_destroy, (pthread_mutex_t * object), (object));
PAWL_STORED_OBJECT(pthread_mutex_lock, (pthread_mutex_t * object), (object));
PAWL_STORED_OBJECT(pthread_mutex_trylock, (pthread_mutex_t * object), (object));
PAWL_STORED_OBJECT(pthread_mutex_timedlock, (pthread_mutex_t * object, const timespec* until),
                   (object, until));
PAWL_STORED_OBJECT(pthread_mutex_clocklock,
                   (pthread_mutex_t * object, clockid_t clock, const timespec* until),
                   (object, clock, until));
PAWL_STORED_OBJECT(pthread_mutex_unlock, (pthread_mutex_t * object), (object));
PAWL_STORED_OBJECT(pthread_mutex_consistent, (pthread_mutex_t * object), (object));

PAWL_STORED_OBJECT(pthread_rwlock_init,
                   (pthread_rwlock_t * object, const pthread_rwlockattr_t* attributes),
                   (object, attributes));
PAWL_STORED_OBJECT(pthread_rwlock_destroy, (pthread_rwlock_t * object), (object));
PAWL_STORED_OBJECT(pthread_rwlock_rdlock, (pthread_rwlock_t * object), (object));
PAWL_STORED_OBJECT(pthread_rwlock_tryrdlock, (pthread_rwlock_t * object), (object));
PAWL_STORED_OBJECT(pthread_rwlock_timedrdlock, (pthread_rwlock_t * object, const timespec* until),
                   (object, until));
PAWL_STORED_OBJECT(pthread_rwlock_clockrdlock,
                   (pthread_rwlock_t * object, clockid_t clock, const timespec* until),
                   (object, clock, until));
PAWL_STORED_OBJECT(pthread_rwlock_wrlock, (pthread_rwlock_t * object), (object));
PAWL_STORED_OBJECT(pthread_rwlock_trywrlock, (pthread_rwlock_t * object), (object));
PAWL_STORED_OBJECT(pthread_rwlock_timedwrlock, (pthread_rwlock_t * object, const timespec* until),
                   (object, until));
PAWL_STORED_OBJECT(pthread_rwlock_clockwrlock,
                   (pthread_rwlock_t * object, clockid_t clock, const timespec* until),
                   (object, clock, until));
PAWL_STORED_OBJECT(pthread_rwlock_unlock, (pthread_rwlock_t * object), (object));

PAWL_STORED_OBJECT(pthread_cond_init,
                   (pthread_cond_t * object, const pthread_condattr_t* attributes),
                   (object, attributes));
PAWL_STORED_OBJECT(pthread_cond_destroy, (pthread_cond_t * object), (object));
PAWL_STORED_OBJECT(pthread_cond_signal, (pthread_cond_t * object), (object));
PAWL_STORED_OBJECT(pthread_cond_broadcast, (pthread_cond_t * object), (object));
PAWL_STORED_AROUND(int, pthread_cond_wait, (pthread_cond_t * object, pthread_mutex_t* mutex),
                   (object, mutex), mark(object);
                   mark(mutex));
PAWL_STORED_AROUND(int, pthread_cond_timedwait,
                   (pthread_cond_t * object, pthread_mutex_t* mutex, const timespec* until),
                   (object, mutex, until), mark(object);
                   mark(mutex));
PAWL_STORED_AROUND(int, pthread_cond_clockwait,
                   (pthread_cond_t * object, pthread_mutex_t* mutex, clockid_t clock,
                    const timespec* until),
                   (object, mutex, clock, until), mark(object);
                   mark(mutex));

// A spin lock is a volatile int.
#define PAWL_STORED_SPIN(name, parameters, arguments) \
  PAWL_STORED_AROUND(int, name, parameters, arguments, \
                     mark_bytes(const_cast<const int*>(object), sizeof *object))
PAWL_STORED_SPIN(pthread_spin_init, (pthread_spinlock_t * object, int shared), (object, shared));
PAWL_STORED_SPIN(pthread_spin_destroy, (pthread_spinlock_t * object), (object));
PAWL_STORED_SPIN(pthread_spin_lock, (pthread_spinlock_t * object), (object));
PAWL_STORED_SPIN(pthread_spin_trylock, (pthread_spinlock_t * object), (object));
PAWL_STORED_SPIN(pthread_spin_unlock, (pthread_spinlock_t * object), (object));

PAWL_STORED_OBJECT(pthread_barrier_init,
                   (pthread_barrier_t * object, const pthread_barrierattr_t* attributes,
                    unsigned count),
                   (object, attributes, count));
PAWL_STORED_OBJECT(pthread_barrier_destroy, (pthread_barrier_t * object), (object));
PAWL_STORED_OBJECT(pthread_barrier_wait, (pthread_barrier_t * object), (object));
PAWL_STORED_OBJECT(pthread_once, (pthread_once_t * object, void (*once)()), (object, once));

PAWL_STORED_OBJECT(sem_init, (sem_t * object, int shared, unsigned value), (object, shared, value));
PAWL_STORED_OBJECT(sem_destroy, (sem_t * object), (object));
PAWL_STORED_OBJECT(sem_wait, (sem_t * object), (object));
PAWL_STORED_OBJECT(sem_trywait, (sem_t * object), (object));
PAWL_STORED_OBJECT(sem_timedwait, (sem_t * object, const timespec* until), (object, until));
PAWL_STORED_OBJECT(sem_clockwait, (sem_t * object, clockid_t clock, const timespec* until),
                   (object, clock, until));
PAWL_STORED_OBJECT(sem_post, (sem_t * object), (object));
PAWL_STORED(int, sem_getvalue, (sem_t * object, int* to), (object, to), mark(to));

PAWL_STORED_OBJECT(mtx_init, (mtx_t * object, int type), (object, type));
PAWL_STORED_OBJECT(mtx_lock, (mtx_t * object), (object));
PAWL_STORED_OBJECT(mtx_timedlock, (mtx_t * object, const timespec* until), (object, until));
PAWL_STORED_OBJECT(mtx_trylock, (mtx_t * object), (object));
PAWL_STORED_OBJECT(mtx_unlock, (mtx_t * object), (object));
extern "C" PAWL_PUBLIC void pawl_stored_mtx_destroy(mtx_t* object) {
  mtx_destroy(object);
  mark(object);
}
PAWL_STORED_OBJECT(cnd_init, (cnd_t * object), (object));
PAWL_STORED_OBJECT(cnd_signal, (cnd_t * object), (object));
PAWL_STORED_OBJECT(cnd_broadcast, (cnd_t * object), (object));
PAWL_STORED_AROUND(int, cnd_wait, (cnd_t * object, mtx_t* mutex), (object, mutex), mark(object);
                   mark(mutex));
PAWL_STORED_AROUND(int, cnd_timedwait, (cnd_t * object, mtx_t* mutex, const timespec* until),
                   (object, mutex, until), mark(object);
                   mark(mutex));
extern "C" PAWL_PUBLIC void pawl_stored_cnd_destroy(cnd_t* object) {
  cnd_destroy(object);
  mark(object);
}
extern "C" PAWL_PUBLIC void pawl_stored_call_once(once_flag* object, void (*once)()) {
  mark(object);
  call_once(object, once);
  mark(object);
}

// What these are asked for.
PAWL_STORED_AROUND(int, pthread_create,
                   (pthread_t * to, const pthread_attr_t* attributes, void* (*start)(void*),
                    void* argument),
                   (to, attributes, start, argument), mark(to));
PAWL_STORED_AROUND(int, thrd_create, (thrd_t * to, thrd_start_t start, void* argument),
                   (to, start, argument), mark(to));
PAWL_STORED(int, pthread_join, (pthread_t thread, void** to), (thread, to), mark(to));
PAWL_STORED(int, thrd_join, (thrd_t thread, int* to), (thread, to), mark(to));
PAWL_STORED(int, pthread_tryjoin_np, (pthread_t thread, void** to), (thread, to), mark(to));
PAWL_STORED(int, pthread_timedjoin_np, (pthread_t thread, void** to, const timespec* until),
            (thread, to, until), mark(to));
PAWL_STORED(int, pthread_clockjoin_np,
            (pthread_t thread, void** to, clockid_t clock, const timespec* until),
            (thread, to, clock, until), mark(to));
PAWL_STORED(int, pthread_getschedparam, (pthread_t thread, int* policy, sched_param* to),
            (thread, policy, to), mark(policy);
            mark(to));
PAWL_STORED(int, pthread_getaffinity_np, (pthread_t thread, size_t size, cpu_set_t* to),
            (thread, size, to), mark_bytes(to, size));
PAWL_STORED(int, pthread_getattr_np, (pthread_t thread, pthread_attr_t* to), (thread, to),
            mark(to));
PAWL_STORED(int, thrd_sleep, (const timespec* time, timespec* rest), (time, rest), mark(rest));
PAWL_STORED(int, tss_create, (tss_t * to, tss_dtor_t ends), (to, ends), mark(to));
PAWL_STORED(int, pthread_key_create, (pthread_key_t * to, void (*ends)(void*)), (to, ends),
            mark(to));
PAWL_STORED(int, pthread_getname_np, (pthread_t thread, char* to, size_t size), (thread, to, size),
            mark_string(to, size));
PAWL_STORED(int, pthread_getcpuclockid, (pthread_t thread, clockid_t* to), (thread, to), mark(to));
PAWL_STORED(int, pthread_setcancelstate, (int state, int* old), (state, old), mark(old));
PAWL_STORED(int, pthread_setcanceltype, (int type, int* old), (type, old), mark(old));

// Attributes.
#define PAWL_STORED_ATTRIBUTES(type) \
  PAWL_STORED(int, type##_init, (type##_t * object), (object), mark(object)); \
  PAWL_STORED(int, type##_destroy, (type##_t * object), (object), mark(object))
PAWL_STORED_ATTRIBUTES(pthread_attr);
PAWL_STORED_ATTRIBUTES(pthread_mutexattr);
PAWL_STORED_ATTRIBUTES(pthread_condattr);
PAWL_STORED_ATTRIBUTES(pthread_rwlockattr);
PAWL_STORED_ATTRIBUTES(pthread_barrierattr);
#define PAWL_STORED_CHOICE(name, type) \
  PAWL_STORED(int, name, (type * object, int value), (object, value), mark(object))
PAWL_STORED_CHOICE(pthread_mutexattr_settype, pthread_mutexattr_t);
PAWL_STORED_CHOICE(pthread_mutexattr_setpshared, pthread_mutexattr_t);
PAWL_STORED_CHOICE(pthread_mutexattr_setrobust, pthread_mutexattr_t);
PAWL_STORED_CHOICE(pthread_mutexattr_setprotocol, pthread_mutexattr_t);
PAWL_STORED_CHOICE(pthread_condattr_setpshared, pthread_condattr_t);
PAWL_STORED_CHOICE(pthread_condattr_setclock, pthread_condattr_t);
PAWL_STORED_CHOICE(pthread_rwlockattr_setpshared, pthread_rwlockattr_t);
PAWL_STORED_CHOICE(pthread_barrierattr_setpshared, pthread_barrierattr_t);
