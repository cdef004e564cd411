// Files at their offsets, pipes with what waits in them, counters, epoll sets, listening sockets.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "kept.h"

static void connect_to(const struct sockaddr* address, socklen_t bytes, int listening) {
  const int client = socket(address->sa_family, SOCK_STREAM, 0);
  CHECK(client >= 0 && connect(client, address, bytes) == 0);
  const int server = accept(listening, NULL, NULL);
  CHECK(server >= 0 && write(client, "hello", 5) == 5);
  char heard[5];
  CHECK(read(server, heard, 5) == 5 && memcmp(heard, "hello", 5) == 0);
  close(client);
  close(server);
}

int main(void) {
  char path[512];
  char byte = 0;
  snprintf(path, sizeof(path), "%s.file", getenv("KEPT_TOLD"));
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(write(file, "0123456789", 10) == 10 && lseek(file, 4, SEEK_SET) == 4);
  const int second = open(path, O_RDONLY);
  CHECK(lseek(second, 7, SEEK_SET) == 7);
  const int same = fcntl(file, F_DUPFD, 40);
  CHECK(same == 40);
  const int adding = open(path, O_WRONLY | O_APPEND);
  const int null = open("/dev/null", O_WRONLY);

  int ends[2];
  char content[5000];
  memset(content, 'p', sizeof(content));
  CHECK(pipe2(ends, O_NONBLOCK) == 0 && write(ends[1], content, 5000) == 5000);
  int empty[2];
  CHECK(pipe(empty) == 0 && fcntl(empty[0], F_SETPIPE_SZ, 1 << 18) == 1 << 18);
  int closed[2];
  CHECK(pipe(closed) == 0 && write(closed[1], "last", 4) == 4 && close(closed[1]) == 0);

  const int counter = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC);
  const int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
  const int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 77};
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, counter, &event) == 0);
  event = (struct epoll_event){.events = EPOLLIN, .data.u64 = 78};
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
  const int signals = signalfd(-1, &mask, SFD_NONBLOCK);

  struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof(any);
  any.sin_port = htons((uint16_t)atoi(getenv("KEPT_PORT")));
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  CHECK(setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
  CHECK(bind(listening, (struct sockaddr*)&any, bytes) == 0 && listen(listening, 7) == 0);
  CHECK(getsockname(listening, (struct sockaddr*)&any, &bytes) == 0);
  CHECK(fcntl(listening, F_SETFL, 0) == 0);
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof(name.sun_path), "%s.s", getenv("KEPT_TOLD"));
  const int local = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(bind(local, (struct sockaddr*)&name, sizeof(name)) == 0 && listen(local, 5) == 0);
  const int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in datagram_address = any;
  CHECK(bind(datagrams, (struct sockaddr*)&datagram_address, sizeof(any)) == 0);
  // A connection to ourselves, which is reset.
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(client, (struct sockaddr*)&any, sizeof(any)) == 0);
  const int server = accept(listening, NULL, NULL);
  CHECK(server >= 0);
  umask(027);

  tell("ready");
  wait_to_go_on();

  CHECK(read(file, &byte, 1) == 1 && byte == '4');
  CHECK(read(same, &byte, 1) == 1 && byte == '5');  // one open file, one offset
  CHECK(read(second, &byte, 1) == 1 && byte == '7');
  CHECK((fcntl(file, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(second, F_GETFD) & FD_CLOEXEC) == 0);
  CHECK((fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR);
  CHECK(write(adding, "a", 1) == 1 && lseek(second, 0, SEEK_END) == 11);
  CHECK(write(null, "n", 1) == 1);

  memset(content, 0, sizeof(content));
  CHECK(read(ends[0], content, 5000) == 5000 && content[0] == 'p' && content[4999] == 'p');
  CHECK(read(ends[0], content, 1) == -1 && errno == EAGAIN);
  CHECK(fcntl(empty[1], F_GETPIPE_SZ) == 1 << 18);
  CHECK((fcntl(empty[0], F_GETFL) & O_NONBLOCK) == 0);
  CHECK(write(empty[1], "e", 1) == 1 && read(empty[0], &byte, 1) == 1 && byte == 'e');
  CHECK(read(closed[0], content, 10) == 4 && memcmp(content, "last", 4) == 0);
  CHECK(read(closed[0], content, 10) == 0);

  CHECK(epoll_wait(set, &event, 1, 0) == 1 && event.data.u64 == 77);
  uint64_t count = 0;
  CHECK(read(counter, &count, 8) == 8 && count == 3);
  CHECK(read(semaphore, &count, 8) == 8 && count == 1);
  CHECK(read(semaphore, &count, 8) == 8 && read(semaphore, &count, 8) == -1);
  CHECK(write(ends[1], "x", 1) == 1);
  CHECK(epoll_wait(set, &event, 1, 1000) == 1 && event.data.u64 == 78);
  struct signalfd_siginfo information;
  CHECK(kill(getpid(), SIGUSR1) == 0);
  CHECK(read(signals, &information, sizeof(information)) == sizeof(information));

  connect_to((struct sockaddr*)&any, sizeof(any), listening);
  connect_to((struct sockaddr*)&name, sizeof(name), local);
  struct sockaddr_in bound;
  bytes = sizeof(bound);
  CHECK(getsockname(datagrams, (struct sockaddr*)&bound, &bytes) == 0);
  CHECK(bound.sin_port == datagram_address.sin_port);
  CHECK(read(server, content, 1) == -1 && errno == ECONNRESET);
  CHECK(read(server, content, 1) == 0);
  CHECK(send(client, "x", 1, MSG_NOSIGNAL) == -1);
  CHECK(umask(0) == 027);
  done();
}
