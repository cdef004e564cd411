/* A library that a program opens: its calls are to reach Pawl as the program's do. */
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

int plugin_msync(void* address, size_t length) { return msync(address, length, MS_SYNC); }
int plugin_fsync(int descriptor) { return fsync(descriptor); }
