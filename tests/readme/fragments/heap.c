/* run: cc -std=c11 -Wall -Wextra -Werror heap.c -o heap $(pkg-config --cflags --libs pawl) && ./heap */
#include <pawl/heap.h>

struct shop {
  long nails;
};

int main(void) {
  FRAGMENT
  return shop->nails == -100 && pawl_heap_close(heap) == 0 ? 0 : 1;
}
