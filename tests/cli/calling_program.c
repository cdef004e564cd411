/* calling_program FILE [sections]: maps a file by Pawl itself, or opens one of failure-atomic
 * sections.  What it does needs no preload library. */
#include <fcntl.h>
#include <pawl/fase.h>
#include <pawl/pawl.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES 4096

int main(int count, char** words) {
  if (count == 3) {
    pawl_fase* const sections = pawl_fase_open(words[1], NULL);
    return sections != NULL && pawl_fase_close(sections) == 0 ? 0 : 1;
  }
  if (count != 2) return 2;
  int file = open(words[1], O_RDWR | O_CREAT, 0600);
  if (file < 0 || pawl_ftruncate(file, BYTES) != 0) return 3;
  char* at = pawl_mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_ATOMIC, file, 0);
  if (at == MAP_FAILED) return 4;
  strcpy(at, "committed");
  if (pawl_msync(at, BYTES, MS_SYNC) != 0) return 5;
  return pawl_munmap(at, BYTES) == 0 ? 0 : 6;
}
