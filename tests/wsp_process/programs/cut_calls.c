// Calls that wait until all is written, or read: a stop ends each of them with a part, and none of
// these threads sees it.  One that a signal ends sees what it would see otherwise, too.
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "kept.h"

enum { kBytes = 8 << 20, kPieces = 5, kAsked = 100, kFirst = 10, kMessages = 4 };

// Of a prime's period, so that what is lost or doubled shows.
static char byte_at(size_t place) { return (char)(place % 251); }

static char sent[kBytes];

// What a thread does to a descriptor, and what it is told.
struct Call {
  ssize_t (*make)(int descriptor, char* bytes);
  int descriptor;
  int other;
  char bytes[kBytes];
  atomic_long answer;
  pthread_t thread;
};

static ssize_t write_all(int descriptor, char* bytes) {
  (void)bytes;
  return write(descriptor, sent, kBytes);
}

static void in_pieces(char* bytes, size_t count, struct iovec* pieces) {
  for (size_t i = 0; i < kPieces; ++i) {
    const size_t from = count * i / kPieces;
    pieces[i] = (struct iovec){bytes + from, count * (i + 1) / kPieces - from};
  }
}

static ssize_t write_pieces(int descriptor, char* bytes) {
  struct iovec pieces[kPieces];
  (void)bytes;
  in_pieces(sent, kBytes, pieces);
  return writev(descriptor, pieces, kPieces);
}

static ssize_t write_pieces_with_flags(int descriptor, char* bytes) {
  struct iovec pieces[kPieces];
  (void)bytes;
  in_pieces(sent, kBytes, pieces);
  return pwritev2(descriptor, pieces, kPieces, -1, 0);
}

static ssize_t send_all(int descriptor, char* bytes) {
  (void)bytes;
  return send(descriptor, sent, kBytes, MSG_NOSIGNAL);
}

static ssize_t send_pieces(int descriptor, char* bytes) {
  struct iovec pieces[kPieces];
  (void)bytes;
  in_pieces(sent, kBytes, pieces);
  const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = kPieces};
  return sendmsg(descriptor, &message, 0);
}

static ssize_t send_file(int descriptor, char* bytes) {
  (void)bytes;
  char name[PATH_MAX];
  CHECK(snprintf(name, sizeof(name), "%s.file", getenv("KEPT_TOLD")) < PATH_MAX);
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 && write(file, sent, kBytes) == kBytes);
  off_t from = 0;
  const ssize_t answer = sendfile(descriptor, file, &from, kBytes);
  CHECK(from == kBytes);
  close(file);
  return answer;
}

static ssize_t receive_all(int descriptor, char* bytes) {
  return recv(descriptor, bytes, kAsked, MSG_WAITALL);
}

static ssize_t receive_pieces(int descriptor, char* bytes) {
  struct iovec pieces[kPieces];
  in_pieces(bytes, kAsked, pieces);
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = kPieces};
  return recvmsg(descriptor, &message, MSG_WAITALL);
}

static ssize_t receive_messages(int descriptor, char* bytes) {
  struct iovec pieces[kMessages];
  struct mmsghdr messages[kMessages] = {0};
  for (int i = 0; i < kMessages; ++i) {
    pieces[i] = (struct iovec){bytes + i, 1};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
  }
  return recvmmsg(descriptor, messages, kMessages, 0, NULL);
}

// With room for a descriptor, which comes with the rest.
static ssize_t receive_passed(int descriptor, char* bytes) {
  struct iovec piece = {bytes, kAsked};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message = {.msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
  const ssize_t answer = recvmsg(descriptor, &message, MSG_WAITALL);
  const struct cmsghdr* const passed = CMSG_FIRSTHDR(&message);
  if (passed != NULL && passed->cmsg_type == SCM_RIGHTS) bytes[kAsked] = 'p';
  return answer;
}

static void pass(int descriptor, const char* bytes, size_t count) {
  struct iovec piece = {(char*)bytes, count};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(int));
  const struct msghdr message = {.msg_iov = &piece,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof(control)};
  CHECK(sendmsg(descriptor, &message, 0) == (ssize_t)count);
}

// Into a stream: nothing may follow a message that was cut.
static ssize_t send_messages(int descriptor, char* bytes) {
  struct iovec pieces[] = {{sent, kBytes}, {"next", 4}};
  struct mmsghdr both[] = {{.msg_hdr = {.msg_iov = &pieces[0], .msg_iovlen = 1}},
                           {.msg_hdr = {.msg_iov = &pieces[1], .msg_iovlen = 1}}};
  const int answer = sendmmsg(descriptor, both, 2, 0);
  memcpy(bytes, &both[0].msg_len, sizeof(both[0].msg_len));
  return answer;
}

// Which wait already, with a part, when the test has the program stopped.
static struct Call writes[] = {
    {.make = write_all}, {.make = write_pieces}, {.make = write_pieces_with_flags},
    {.make = send_file}, {.make = send_all},     {.make = send_pieces}};
static struct Call reads[] = {{.make = receive_all}, {.make = receive_pieces}};
// These end with their part: no other call does the rest of them.
static struct Call passed[] = {{.make = receive_passed}, {.make = receive_passed}};
static struct Call to_stream = {.make = send_messages};
static struct Call messages = {.make = receive_messages};
static struct Call ended = {.make = write_all};  // by a signal
enum { kWrites = sizeof(writes) / sizeof(writes[0]), kReads = sizeof(reads) / sizeof(reads[0]) };
enum { kToPipes = 2 };

static void* run(void* argument) {
  struct Call* call = argument;
  call->answer = call->make(call->descriptor, call->bytes);
  return NULL;
}

static void begin(struct Call* call) {
  call->answer = -2;
  CHECK(pthread_create(&call->thread, NULL, run, call) == 0);
}

static void connect_to(int* ends, int listening, const void* address, socklen_t bytes) {
  int family = 0;
  socklen_t family_bytes = sizeof(family);
  CHECK(getsockopt(listening, SOL_SOCKET, SO_DOMAIN, &family, &family_bytes) == 0);
  ends[0] = socket(family, SOCK_STREAM, 0);
  CHECK(connect(ends[0], address, bytes) == 0);
  ends[1] = accept(listening, NULL, NULL);
  CHECK(ends[1] >= 0 && close(listening) == 0);
}

static void connect_unix(int* ends) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};  // the kernel chooses an abstract name
  socklen_t bytes = sizeof(address.sun_family);
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(bind(listening, (struct sockaddr*)&address, bytes) == 0 && listen(listening, 1) == 0);
  bytes = sizeof(address);
  CHECK(getsockname(listening, (struct sockaddr*)&address, &bytes) == 0);
  connect_to(ends, listening, &address, bytes);
}

static void connect_both(int* ends) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof(address);
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(bind(listening, (struct sockaddr*)&address, bytes) == 0 && listen(listening, 1) == 0);
  CHECK(getsockname(listening, (struct sockaddr*)&address, &bytes) == 0);
  connect_to(ends, listening, &address, bytes);
}

static void handle(int signal) { (void)signal; }

static size_t drain(int descriptor, size_t bytes, size_t from) {
  static char piece[1 << 14];
  while (from < bytes) {
    const ssize_t got = read(descriptor, piece, sizeof(piece));
    CHECK(got > 0);
    for (ssize_t i = 0; i < got; ++i) CHECK(piece[i] == byte_at(from + (size_t)i));
    from += (size_t)got;
    usleep(1000);
  }
  return from;
}

static void join(struct Call* call, long answer) {
  CHECK(pthread_join(call->thread, NULL) == 0);
  if (call->answer != answer) fprintf(stderr, "%ld in place of %ld\n", call->answer, answer);
  CHECK(call->answer == answer);
}

int main(void) {
  int ends[2];
  for (size_t i = 0; i < kBytes; ++i) sent[i] = byte_at(i);
  for (int i = 0; i < kWrites; ++i) {
    if (i < kToPipes) {
      CHECK(pipe(ends) == 0);
    } else {
      connect_both(ends);
    }
    writes[i].other = ends[0];
    writes[i].descriptor = ends[1];
    begin(&writes[i]);
  }
  for (int i = 0; i < kReads; ++i) {
    connect_both(ends);
    reads[i].other = ends[0];
    reads[i].descriptor = ends[1];
    CHECK(write(ends[0], sent, kFirst) == kFirst);
    begin(&reads[i]);
  }
  for (int i = 0; i < 2; ++i) {
    if (i == 0) {
      connect_unix(ends);
    } else {
      connect_both(ends);
    }
    passed[i].other = ends[0];
    passed[i].descriptor = ends[1];
    CHECK(write(ends[0], sent, kFirst) == kFirst);
    begin(&passed[i]);
  }
  connect_both(ends);
  to_stream.other = ends[0];
  to_stream.descriptor = ends[1];
  begin(&to_stream);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof(address);
  messages.descriptor = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(bind(messages.descriptor, (struct sockaddr*)&address, bytes) == 0);
  CHECK(getsockname(messages.descriptor, (struct sockaddr*)&address, &bytes) == 0);
  messages.other = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(connect(messages.other, (struct sockaddr*)&address, bytes) == 0);
  CHECK(send(messages.other, "a", 1, 0) == 1 && send(messages.other, "b", 1, 0) == 1);
  begin(&messages);
  const struct sigaction action = {.sa_handler = handle};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && pipe(ends) == 0);
  ended.other = ends[0];
  ended.descriptor = ends[1];
  begin(&ended);
  usleep(100000);  // that they wait
  tell("ready");
  wait_to_go_on();  // meanwhile they are stopped, and go on
  for (int i = 0; i < kWrites; ++i) CHECK(writes[i].answer == -2);
  for (int i = 0; i < kReads; ++i) CHECK(reads[i].answer == -2);
  CHECK(messages.answer == -2 && ended.answer == -2);
  CHECK(passed[0].answer == kFirst && passed[1].answer == kFirst && to_stream.answer == 1);
  for (int i = 0; i < 2; ++i) join(&passed[i], kFirst);
  pass(passed[0].other, sent, kAsked);
  CHECK(receive_passed(passed[0].descriptor, passed[0].bytes) == kAsked);
  CHECK(passed[0].bytes[kAsked] == 'p');
  join(&to_stream, 1);
  unsigned part = 0;
  memcpy(&part, to_stream.bytes, sizeof(part));
  CHECK(part < kBytes && drain(to_stream.other, part, 0) == part);
  CHECK(recv(to_stream.other, &part, 1, MSG_DONTWAIT) == -1);
  CHECK(pthread_kill(ended.thread, SIGUSR1) == 0);
  CHECK(pthread_join(ended.thread, NULL) == 0);
  CHECK(ended.answer > 0 && ended.answer < kBytes);
  CHECK(drain(ended.other, (size_t)ended.answer, 0) == (size_t)ended.answer);
  for (int i = 0; i < kWrites; ++i) {
    CHECK(drain(writes[i].other, kBytes, 0) == kBytes);
    join(&writes[i], kBytes);
  }
  for (int i = 0; i < kReads; ++i) {
    CHECK(write(reads[i].other, sent + kFirst, kAsked - kFirst) == kAsked - kFirst);
    join(&reads[i], kAsked);
    CHECK(memcmp(reads[i].bytes, sent, kAsked) == 0);
  }
  CHECK(send(messages.other, "c", 1, 0) == 1 && send(messages.other, "d", 1, 0) == 1);
  join(&messages, kMessages);
  CHECK(memcmp(messages.bytes, "abcd", kMessages) == 0);
  done();
}
