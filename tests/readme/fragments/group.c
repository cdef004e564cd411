/* run: cc -std=gnu11 -Wall -Wextra -Werror group.c -o group $(pkg-config --cflags --libs pawl) && ./group */
#include <fcntl.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  const size_t length = 4096;
  const int orders_fd = open("orders", O_RDWR | O_CREAT, 0600);
  const int index_fd = open("index", O_RDWR | O_CREAT, 0600);
  FRAGMENT
  if (access("shop.group", F_OK) == 0 && access("shop.group.pawl", F_OK) != 0) return 0;
  return fprintf(stderr, "group: %s\n", pawl_last_error()), 1;
}
