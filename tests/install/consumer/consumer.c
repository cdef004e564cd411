/* The smallest program that uses Pawl: maps a file, changes it, commits, and reads it back. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pawl/pawl.h"

int main(int argc, char** argv) {
  enum { LENGTH = 8192 };
  char bytes[6] = "";
  if (argc != 2) return 2;
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0) return 2;
  char* memory = pawl_mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_ATOMIC, fd, 0);
  if (memory == MAP_FAILED || pawl_ftruncate(fd, LENGTH) != 0) {
    fprintf(stderr, "consumer: %s\n", pawl_last_error());
    return 1;
  }
  memcpy(memory + 4096, "hello", 5);
  if (pawl_msync(memory, LENGTH, MS_SYNC) != 0 || pawl_munmap(memory, LENGTH) != 0) {
    fprintf(stderr, "consumer: %s\n", pawl_last_error());
    return 1;
  }
  if (pread(fd, bytes, 5, 4096) != 5) return 1;
  return strcmp(bytes, "hello") == 0 ? 0 : 1;
}
