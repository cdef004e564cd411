/* fibre: the entry of a fibre that was made by hand, which returns to nowhere.  It has the form of
 * a signal handler. */
#include <unistd.h>

void entry(void) { _exit(0); }

int main(void) {
#ifdef __x86_64__
  static void* stack[8192];
  __asm__ volatile("mov %0, %%rsp\n push $0\n jmp *%1"
                   :
                   : "r"(stack + 8192), "r"(entry)
                   : "memory");
#endif
  entry();
}
