#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "protocol.h"

#define BACKLOG 1024
#define READ_BYTES 65536

struct loop_thread {
  struct worker worker;
  uv_thread_t thread;
  uv_loop_t loop;
  uv_tcp_t listener;
  uv_async_t stop;
  char read_bytes[READ_BYTES];
};

struct connection {
  uv_tcp_t stream;
  struct loop_thread* thread;
  char* input; /* requests that are not whole yet */
  size_t input_bytes;
  size_t input_room;
};

struct answer {
  uv_write_t write;
  char* bytes;
};

static void forget(uv_handle_t* handle) {
  struct connection* connection = handle->data;
  free(connection->input);
  free(connection);
}

static void close_connection(struct connection* connection) {
  uv_handle_t* handle = (uv_handle_t*)&connection->stream;
  if (!uv_is_closing(handle)) uv_close(handle, forget);
}

static void written(uv_write_t* write, int status) {
  struct answer* answer = write->data;
  if (status < 0) close_connection(write->handle->data);
  free(answer->bytes);
  free(answer);
}

/* Takes the output's bytes. */
static void send_output(struct connection* connection, struct output* output) {
  struct answer* answer = malloc(sizeof *answer);
  if (answer == NULL) {
    free(output->bytes);
    close_connection(connection);
    return;
  }
  answer->bytes = output->bytes;
  answer->write.data = answer;
  const uv_buf_t buffer = uv_buf_init(output->bytes, (unsigned)output->count);
  if (uv_write(&answer->write, (uv_stream_t*)&connection->stream, &buffer, 1, written) != 0) {
    free(answer->bytes);
    free(answer);
    close_connection(connection);
  }
}

static bool keep(struct connection* connection, const char* bytes, size_t count) {
  if (connection->input_room - connection->input_bytes < count) {
    const size_t room = 2 * (connection->input_bytes + count);
    char* grown = realloc(connection->input, room);
    if (grown == NULL) return false;
    connection->input = grown;
    connection->input_room = room;
  }
  memcpy(connection->input + connection->input_bytes, bytes, count);
  connection->input_bytes += count;
  return true;
}

static void allocate(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  (void)suggested;
  struct connection* connection = handle->data;
  *buffer = uv_buf_init(connection->thread->read_bytes, READ_BYTES);
}

static void received(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  struct connection* connection = stream->data;
  if (count < 0 || !keep(connection, buffer->base, (size_t)count)) {
    close_connection(connection);
    return;
  }
  struct output output = {NULL, 0, 0};
  size_t taken = 0;
  const enum verdict verdict = protocol_answer(&connection->thread->worker, connection->input,
                                               connection->input_bytes, &taken, &output);
  connection->input_bytes -= taken;
  memmove(connection->input, connection->input + taken, connection->input_bytes);
  if (output.count > 0) send_output(connection, &output);
  if (verdict == CLOSE) close_connection(connection);
}

static void connected(uv_stream_t* listener, int status) {
  struct loop_thread* thread = listener->data;
  struct connection* connection = status < 0 ? NULL : calloc(1, sizeof *connection);
  if (connection == NULL) return;
  connection->thread = thread;
  uv_tcp_init(&thread->loop, &connection->stream);
  connection->stream.data = connection;
  if (uv_accept(listener, (uv_stream_t*)&connection->stream) != 0) {
    close_connection(connection);
    return;
  }
  uv_tcp_nodelay(&connection->stream, 1);
  uv_read_start((uv_stream_t*)&connection->stream, allocate, received);
}

static void stop(uv_async_t* handle) { uv_stop(handle->loop); }

static void run(void* argument) {
  struct loop_thread* thread = argument;
  uv_run(&thread->loop, UV_RUN_DEFAULT);
}

/* Each thread has a socket of its own on the same port, so that the kernel spreads connections. */
static int listen_on(struct loop_thread* thread, const struct sockaddr_in* address) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  if (descriptor < 0) return -errno;
  if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0 ||
      bind(descriptor, (const struct sockaddr*)address, sizeof *address) != 0) {
    const int failure = -errno;
    close(descriptor);
    return failure;
  }
  thread->listener.data = thread;
  uv_tcp_init(&thread->loop, &thread->listener);
  const int opened = uv_tcp_open(&thread->listener, descriptor);
  return opened != 0 ? opened : uv_listen((uv_stream_t*)&thread->listener, BACKLOG, connected);
}

static const char* prepare(struct loop_thread* thread, pawl_fase* file, struct cache* cache,
                           unsigned number, struct sockaddr_in* address) {
  thread->worker.file = file;
  thread->worker.cache = cache;
  thread->worker.inbox = cache_inbox(file, cache, number);
  thread->worker.value = malloc(VALUE_BYTES_MAX);
  if (thread->worker.inbox == NULL || thread->worker.value == NULL) return "no memory";
  if (uv_loop_init(&thread->loop) != 0) return "no event loop";
  uv_async_init(&thread->loop, &thread->stop, stop);
  const int listens = listen_on(thread, address);
  if (listens != 0) return uv_strerror(listens);
  socklen_t length = sizeof *address;
  int descriptor = -1;
  uv_fileno((uv_handle_t*)&thread->listener, &descriptor);
  getsockname(descriptor, (struct sockaddr*)address, &length);
  return NULL;
}

static void signalled(uv_signal_t* handle, int number) {
  (void)number;
  uv_stop(handle->loop);
}

int serve(pawl_fase* file, struct cache* cache, const char* address, unsigned port,
          unsigned threads) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct loop_thread* all = calloc(threads, sizeof *all);
  const char* wrong = all == NULL ? "no memory" : NULL;
  if (inet_pton(AF_INET, address, &at.sin_addr) != 1) wrong = "no IPv4 address";
  for (unsigned i = 0; wrong == NULL && i < threads; ++i)
    wrong = prepare(&all[i], file, cache, i, &at);
  if (wrong != NULL) {
    fprintf(stderr, "cache: cannot serve on %s, port %u: %s\n", address, port, wrong);
    free(all);
    return 1;
  }
  uv_signal_t terminate;
  uv_signal_t interrupt;
  uv_loop_t signals;
  uv_loop_init(&signals);
  uv_signal_init(&signals, &terminate);
  uv_signal_init(&signals, &interrupt);
  uv_signal_start(&terminate, signalled, SIGTERM);
  uv_signal_start(&interrupt, signalled, SIGINT);
  for (unsigned i = 0; i < threads; ++i) uv_thread_create(&all[i].thread, run, &all[i]);
  printf("%u\n", ntohs(at.sin_port));
  fflush(stdout);
  uv_run(&signals, UV_RUN_DEFAULT);
  for (unsigned i = 0; i < threads; ++i) uv_async_send(&all[i].stop);
  for (unsigned i = 0; i < threads; ++i) uv_thread_join(&all[i].thread);
  return 0;
}
