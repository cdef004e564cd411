// A socket's calls that wait with a timeout (SO_RCVTIMEO) end with EINTR when a thread is only
// stopped; the program does not see it.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "kept.h"

static atomic_int received;
static atomic_int failed_by;
static int heard;

static void* receive(void* argument) {
  char word = 0;
  const ssize_t got = recv(heard, &word, 1, 0);
  failed_by = got < 0 ? errno : 0;
  received = 1;
  return argument;
}

int main(void) {
  heard = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof(address);
  CHECK(bind(heard, (struct sockaddr*)&address, bytes) == 0);
  CHECK(getsockname(heard, (struct sockaddr*)&address, &bytes) == 0);
  const struct timeval timeout = {3600, 0};
  CHECK(setsockopt(heard, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, receive, NULL) == 0);
  usleep(20000);  // that it waits
  tell("ready");
  wait_to_go_on();
  CHECK(!received);
  CHECK(sendto(heard, "a", 1, 0, (struct sockaddr*)&address, bytes) == 1);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(failed_by == 0);
  done();
}
