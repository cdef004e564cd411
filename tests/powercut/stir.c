/* stir: hands its standard input to the kernel as entropy, and has it used at once.
 *
 * A guest that is resumed again and again from one saved state would otherwise draw the same random
 * numbers each time, which no two boots of a machine do.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BYTES_MAX = 64 };

int main(void) {
  struct {
    struct rand_pool_info info;
    char bytes[BYTES_MAX];
  } entropy;
  memset(&entropy, 0, sizeof entropy);
  const ssize_t count = read(STDIN_FILENO, entropy.info.buf, BYTES_MAX);
  const int device = open("/dev/urandom", O_RDWR);
  if (count <= 0 || device < 0) return 1;
  entropy.info.entropy_count = (int)count * 8;
  entropy.info.buf_size = (int)count;
  if (ioctl(device, RNDADDENTROPY, &entropy) != 0 || ioctl(device, RNDRESEEDCRNG) != 0) {
    perror("stir");
    return 1;
  }
  return 0;
}
