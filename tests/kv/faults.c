/* To be preloaded: makes calls fail on the file system, as the file "fault" in the current
 * directory says.  flush: what makes bytes durable fails with EIO; space, quota, limit: what takes
 * space fails with ENOSPC, EDQUOT, EFBIG.  Without the file everything works. */
#define _GNU_SOURCE /* RTLD_NEXT, pwritev2, fallocate */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define FAULT_BYTES_MAX 16

/* Keeps errno. */
static int fault_is(const char* wanted) {
  char text[FAULT_BYTES_MAX] = "";
  const int before = errno;
  const int descriptor = open("fault", O_RDONLY | O_CLOEXEC);
  ssize_t got = 0;
  if (descriptor >= 0) {
    got = read(descriptor, text, sizeof text - 1);
    close(descriptor);
  }
  errno = before;
  return got > 0 && strcmp(text, wanted) == 0;
}

/* What the function would have been without this library; type is that of a pointer to it.  ISO C
 * has no conversion from dlsym's result, so the bytes are copied. */
#define DECLARE_NEXT(type, name) \
  type next; \
  void* const found = dlsym(RTLD_NEXT, name); \
  if (found == NULL) abort(); \
  memcpy(&next, &found, sizeof next)

typedef int flush_function(int);
typedef ssize_t pwritev2_function(int, const struct iovec*, int, off_t, int);
typedef int fallocate_function(int, int, off_t, off_t);

static int fail(int number) {
  errno = number;
  return -1;
}

int fsync(int descriptor) {
  DECLARE_NEXT(flush_function*, "fsync");
  return fault_is("flush") ? fail(EIO) : next(descriptor);
}

int fdatasync(int descriptor) {
  DECLARE_NEXT(flush_function*, "fdatasync");
  return fault_is("flush") ? fail(EIO) : next(descriptor);
}

ssize_t pwritev2(int descriptor, const struct iovec* pieces, int count, off_t offset, int flags) {
  DECLARE_NEXT(pwritev2_function*, "pwritev2");
  return fault_is("flush") ? fail(EIO) : next(descriptor, pieces, count, offset, flags);
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  DECLARE_NEXT(fallocate_function*, "fallocate");
  if (fault_is("space")) return fail(ENOSPC);
  if (fault_is("quota")) return fail(EDQUOT);
  return fault_is("limit") ? fail(EFBIG) : next(descriptor, mode, offset, length);
}
