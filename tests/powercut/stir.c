/* stir: hands its standard input to the kernel as entropy, and has it used at once.
 *
 * A guest that is resumed again and again from one saved state would otherwise draw the same random
 * numbers each time, which no two boots of a machine do.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BYTES_MAX = 64 };

int main(void) {
  /* struct rand_pool_info: how many bits, how many bytes, and the bytes. */
  union {
    int numbers[2];
    char bytes[2 * sizeof(int) + BYTES_MAX];
  } entropy;
  const ssize_t count = read(STDIN_FILENO, entropy.bytes + 2 * sizeof(int), BYTES_MAX);
  const int device = open("/dev/urandom", O_RDWR);
  if (count <= 0 || device < 0) return 1;
  entropy.numbers[0] = (int)count * 8;
  entropy.numbers[1] = (int)count;
  if (ioctl(device, RNDADDENTROPY, &entropy) != 0 || ioctl(device, RNDRESEEDCRNG) != 0) {
    perror("stir");
    return 1;
  }
  return 0;
}
