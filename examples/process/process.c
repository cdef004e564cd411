#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void open_standard_descriptors(void) {
  int opened = -1;
  do {
    opened = open("/dev/null", O_RDWR);
  } while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened > STDERR_FILENO) close(opened);
}

static void raise_descriptor_limit(void) {
  struct rlimit descriptors;
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
}

void prepare_process(void) {
  open_standard_descriptors();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  raise_descriptor_limit();
}

void make_private_file(const char* path) {
  const int made = open(path, O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
  if (made >= 0) close(made);
}
