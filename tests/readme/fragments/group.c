/* run: cc -std=gnu11 -Wall -Wextra -Werror group.c -o group $(pkg-config --cflags --libs pawl) && ./group */
#include <fcntl.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_file(const char *path, size_t length) {
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)length) != 0) exit(1);
  return fd;
}

int main(void) {
  const size_t length = 4096;
  const int orders_fd = open_file("orders", length), index_fd = open_file("index", length);
  FRAGMENT
  if (access("shop.group", F_OK) == 0 && access("shop.group.pawl", F_OK) != 0) return 0;
  return fprintf(stderr, "group: %s\n", pawl_last_error()), 1;
}
