/* The load inside the guest: connections to a Redis on this machine, which are never opened again.

   Usage: guest_load PORT CONNECTIONS REDIS_PID

   Each connection sets keys in turn, and says so on PORT once Redis has answered; every so often it
   reads all of its keys back.  Lines, each written by one write():

     set CONNECTION NUMBER      the NUMBER-th SET was answered
     audit CONNECTION NUMBER    all keys hold what they should, after that many
     state UPTIME REDIS STARTED RESETS RETRANSMITS
                                seconds since boot, Redis's process and when it began (in ticks
   since boot), and what TCP counted FAULT TEXT                 something that no machine without a
   power failure would have seen */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  kRedisPort = 6379,
  kKeys = 64,
  kConnectionsMax = 16,
  kSetsBetweenAudits = 60,
  kConnectTriesMax = 2000,
  kLineBytes = 256,
};
static const struct timespec kPause = {0, 2000000};
static const struct timespec kBetweenStates = {0, 100000000};

static int port;

static void say(const char* format, ...) {
  char line[kLineBytes];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof line) length = sizeof line - 1;
  if (write(port, line, (size_t)length) != length) _exit(3);
}

static int connect_to_redis(void) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(kRedisPort),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (int i = 0; i < kConnectTriesMax; ++i) {
    int made = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(made, (struct sockaddr*)&address, sizeof address) == 0) {
      int on = 1;
      setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return made;
    }
    close(made);
    nanosleep(&kPause, NULL);
  }
  say("FAULT cannot connect to Redis\n");
  return -1;
}

/* Sends a request, and has the answer compared. */
static int ask(int connection, const char* request, const char* expected) {
  char answer[kLineBytes];
  size_t length = strlen(request), wanted = strlen(expected), got = 0;
  if (send(connection, request, length, MSG_NOSIGNAL) != (ssize_t)length) {
    say("FAULT a connection does not take a request\n");
    return 0;
  }
  while (got < wanted) {
    ssize_t count = recv(connection, answer + got, wanted - got, 0);
    if (count <= 0) {
      say("FAULT a connection broke\n");
      return 0;
    }
    got += (size_t)count;
  }
  if (memcmp(answer, expected, wanted) != 0) {
    say("FAULT Redis said something else than it should\n");
    return 0;
  }
  return 1;
}

static void* load(void* argument) {
  int number = (int)(long)argument;
  unsigned long holds[kKeys] = {0};
  char request[kLineBytes], value[32], expected[64];
  int connection = connect_to_redis();
  for (unsigned long i = 1; connection >= 0; ++i) {
    int key = (int)(i % kKeys);
    snprintf(value, sizeof value, "%d:%lu", number, i);
    snprintf(request, sizeof request, "SET key:%d:%d %s\r\n", number, key, value);
    if (!ask(connection, request, "+OK\r\n")) break;
    holds[key] = i;
    say("set %d %lu\n", number, i);
    if (i % kSetsBetweenAudits == 0) {
      for (key = 0; key < kKeys; ++key) {
        if (holds[key] == 0) continue;
        snprintf(value, sizeof value, "%d:%lu", number, holds[key]);
        snprintf(request, sizeof request, "GET key:%d:%d\r\n", number, key);
        snprintf(expected, sizeof expected, "$%zu\r\n%s\r\n", strlen(value), value);
        if (!ask(connection, request, expected)) return NULL;
      }
      say("audit %d %lu\n", number, i);
    }
    nanosleep(&kPause, NULL);
  }
  return NULL;
}

/* Of /proc/net/snmp: the value below a name in the second line that begins with "Tcp:". */
static long tcp_count(const char* wanted) {
  char names[1024] = "", values[1024] = "";
  FILE* file = fopen("/proc/net/snmp", "r");
  if (file == NULL) return -1;
  while (fgets(names, sizeof names, file) != NULL && strncmp(names, "Tcp:", 4) != 0) continue;
  char *rest_names = NULL, *rest_values = NULL;
  long found = -1;
  if (fgets(values, sizeof values, file) != NULL) {
    char* name = strtok_r(names, " \n", &rest_names);
    char* value = strtok_r(values, " \n", &rest_values);
    for (; name != NULL && value != NULL;
         name = strtok_r(NULL, " \n", &rest_names), value = strtok_r(NULL, " \n", &rest_values))
      if (strcmp(name, wanted) == 0) found = atol(value);
  }
  fclose(file);
  return found;
}

static unsigned long long started(const char* process) {
  char path[64], text[1024] = "";
  snprintf(path, sizeof path, "/proc/%s/stat", process);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  size_t count = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[count] = '\0';
  char* field = strrchr(text, ')');
  for (int i = 0; field != NULL && i < 20; ++i) field = strchr(field + 1, ' ');
  return field == NULL ? 0 : strtoull(field, NULL, 10);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  port = open(argv[1], O_WRONLY);
  int connections = atoi(argv[2]);
  if (port < 0 || connections < 1 || connections > kConnectionsMax) return 2;
  for (long i = 0; i < connections; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, load, (void*)i) != 0) return 3;
  }
  for (;;) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    say("state %ld.%03ld %s %llu %ld %ld\n", (long)now.tv_sec, now.tv_nsec / 1000000, argv[3],
        started(argv[3]), tcp_count("EstabResets"), tcp_count("RetransSegs"));
    nanosleep(&kBetweenStates, NULL);
  }
}
