#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "protocol.h"

struct loop_thread {
  struct worker worker;
  uv_thread_t thread;
  uv_loop_t loop;
  uv_tcp_t listener;
  uv_async_t stop;
  uv_timer_t tick;
  size_t buffer_bytes; /* of its clients */
  size_t buffer_bytes_max;
  bool has_one_waiting; /* a client for whom there was no memory */
  bool tidies;          /* gives back what a flush_all cleared: one thread is enough */
  char read_bytes[READ_BYTES];
};

struct connection {
  uv_tcp_t stream;
  struct loop_thread* thread;
  char* input; /* requests that were not answered yet */
  size_t input_bytes;
  size_t input_room;
  size_t get_at;
  size_t answer_bytes;  /* of memory, for answers that are being sent */
  size_t counted_bytes; /* of its buffers, in what all clients of the thread take */
  bool has_said_all;    /* it sends no more, and may still read */
  bool ends;            /* when its answers are sent */
};

struct answer {
  uv_write_t write;
  char* bytes;
  size_t room; /* of the bytes and of itself */
};

/* What one client takes at most: half of a request and what was read behind it, answers for which
 * the memory that grows by doubling is paused at, and those that may still be made then. */
_Static_assert(2 * (VALUE_BYTES_MAX + LINE_BYTES_MAX + READ_BYTES) + OUTPUT_BYTES_PAUSE +
                       2 * (OUTPUT_BYTES_PAUSE + VALUE_BYTES_MAX + LINE_BYTES_MAX) <=
                   THREAD_BUFFERS_BYTES_MIN,
               "a client that is alone has room for all that it may use");

static atomic_uint clients;

static void serve_requests(struct connection* connection);

static void forget(uv_handle_t* handle) {
  struct connection* connection = handle->data;
  free(connection);
  atomic_fetch_sub(&clients, 1);
}

static void close_connection(struct connection* connection) {
  uv_handle_t* handle = (uv_handle_t*)&connection->stream;
  if (uv_is_closing(handle)) return;
  connection->thread->buffer_bytes -= connection->counted_bytes;
  connection->counted_bytes = 0;
  /* At once: others may take the room before the loop comes to those that are closed. */
  free(connection->input);
  connection->input = NULL;
  connection->input_bytes = 0;
  connection->input_room = 0;
  uv_close(handle, forget);
}

static void take_larger(uv_handle_t* handle, void* largest) {
  struct connection** so_far = largest;
  struct connection* connection = handle->data; /* other handles have none */
  if (handle->type != UV_TCP || connection == NULL || uv_is_closing(handle)) return;
  if (*so_far == NULL || connection->counted_bytes > (*so_far)->counted_bytes) *so_far = connection;
}

/* Counts what its buffers take now, and keeps what all take within the bound. */
static void count_buffers(struct connection* connection) {
  struct loop_thread* thread = connection->thread;
  if (uv_is_closing((uv_handle_t*)&connection->stream)) return;
  thread->buffer_bytes -= connection->counted_bytes;
  connection->counted_bytes = connection->input_room + connection->answer_bytes;
  thread->buffer_bytes += connection->counted_bytes;
  while (thread->buffer_bytes > thread->buffer_bytes_max) {
    struct connection* largest = NULL;
    uv_walk(&thread->loop, take_larger, &largest);
    close_connection(largest);
  }
}

static void written(uv_write_t* write, int status) {
  struct answer* answer = write->data;
  struct connection* connection = write->handle->data;
  connection->answer_bytes -= answer->room;
  free(answer->bytes);
  free(answer);
  if (status < 0) {
    close_connection(connection);
  } else {
    serve_requests(connection);
  }
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
  answer->room = output->room + sizeof *answer;
  answer->write.data = answer;
  /* There are OUTPUT_BYTES_PAUSE and a value at most. */
  const uv_buf_t buffer = uv_buf_init(output->bytes, (unsigned)output->count);
  if (uv_write(&answer->write, (uv_stream_t*)&connection->stream, &buffer, 1, written) != 0) {
    free(answer->bytes);
    free(answer);
    close_connection(connection);
    return;
  }
  connection->answer_bytes += answer->room;
}

/* Makes room for so many bytes of input, or gives back what is not needed. */
static bool set_room(struct connection* connection, size_t room) {
  if (room == 0) {
    free(connection->input);
    connection->input = NULL;
    connection->input_room = 0;
    return true;
  }
  char* moved = realloc(connection->input, room);
  if (moved == NULL) return false;
  connection->input = moved;
  connection->input_room = room;
  return true;
}

static bool keep(struct connection* connection, const char* bytes, size_t count) {
  if (count == 0) return true;
  if (connection->input_room - connection->input_bytes < count &&
      !set_room(connection, 2 * (connection->input_bytes + count))) {
    return false;
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
  connection->has_said_all = count == UV_EOF;
  if (count >= 0 ? keep(connection, buffer->base, (size_t)count) : connection->has_said_all) {
    serve_requests(connection);
  } else {
    close_connection(connection);
  }
}

static void drop_input(struct connection* connection, size_t bytes) {
  connection->input_bytes -= bytes;
  memmove(connection->input, connection->input + bytes, connection->input_bytes);
  if (connection->input_room > IDLE_BUFFER_BYTES &&
      connection->input_bytes <= IDLE_BUFFER_BYTES / 2) {
    set_room(connection, connection->input_bytes);
  }
}

/* Answers what the client sent, unless it has not read what it was answered before. */
static void serve_requests(struct connection* connection) {
  uv_stream_t* stream = (uv_stream_t*)&connection->stream;
  enum verdict verdict = PAUSE;
  while (verdict == PAUSE && !connection->ends && connection->input_bytes > 0 &&
         connection->answer_bytes < OUTPUT_BYTES_PAUSE && !uv_is_closing((uv_handle_t*)stream)) {
    struct output output = {NULL, 0, 0, false};
    size_t taken = 0;
    verdict = protocol_answer(&connection->thread->worker, &connection->get_at, connection->input,
                              connection->input_bytes, &taken, &output);
    if (taken > 0) drop_input(connection, taken);
    connection->ends = verdict == CLOSE;
    if (output.has_failed) {
      free(output.bytes);
      close_connection(connection);
    } else if (output.count > 0) {
      send_output(connection, &output);
    }
  }
  /* Nothing completes what is left of the input. */
  if (connection->has_said_all && (verdict == GO_ON || connection->input_bytes == 0))
    connection->ends = true;
  count_buffers(connection);
  if (uv_is_closing((uv_handle_t*)stream)) return;
  if (connection->ends && connection->answer_bytes == 0) {
    close_connection(connection);
  } else if (connection->ends || connection->has_said_all ||
             connection->answer_bytes >= OUTPUT_BYTES_PAUSE) {
    uv_read_stop(stream);
  } else {
    uv_read_start(stream, allocate, received); /* also where it had not stopped */
  }
}

static void connected(uv_stream_t* listener, int status) {
  struct loop_thread* thread = listener->loop->data;
  if (status < 0) return;
  struct connection* connection = calloc(1, sizeof *connection);
  /* Without memory it waits: nobody else is accepted before. */
  thread->has_one_waiting = connection == NULL;
  if (connection == NULL) return;
  connection->thread = thread;
  uv_tcp_init(&thread->loop, &connection->stream);
  connection->stream.data = connection;
  const unsigned clients_before = atomic_fetch_add(&clients, 1);
  if (uv_accept(listener, (uv_stream_t*)&connection->stream) != 0) {
    close_connection(connection);
    return;
  }
  if (clients_before >= CLIENTS_MAX) {
    char refusal[] = "ERROR Too many open connections\r\n";
    const uv_buf_t buffer = uv_buf_init(refusal, sizeof refusal - 1);
    uv_try_write((uv_stream_t*)&connection->stream, &buffer, 1);
    close_connection(connection);
    return;
  }
  uv_tcp_nodelay(&connection->stream, 1);
  uv_read_start((uv_stream_t*)&connection->stream, allocate, received);
}

static void tick(uv_timer_t* timer) {
  struct loop_thread* thread = timer->loop->data;
  if (thread->has_one_waiting) connected((uv_stream_t*)&thread->listener, 0);
  if (thread->tidies) cache_tidy(thread->worker.file, thread->worker.cache, (int64_t)time(NULL));
}

static void stop(uv_async_t* handle) { uv_stop(handle->loop); }

static void run(void* argument) {
  struct loop_thread* thread = argument;
  uv_run(&thread->loop, UV_RUN_DEFAULT);
}

static bool set_option(int descriptor, int option) {
  const int one = 1;
  return setsockopt(descriptor, SOL_SOCKET, option, &one, sizeof one) == 0;
}

/* Each thread has a socket of its own on the same port, so that the kernel spreads connections. The
 * first takes the port for itself before it lets others in, so that no other server shares it. */
static int listen_on(struct loop_thread* thread, bool is_first, const struct sockaddr_in* address) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  if (!set_option(descriptor, SO_REUSEADDR) ||
      (!is_first && !set_option(descriptor, SO_REUSEPORT)) ||
      bind(descriptor, (const struct sockaddr*)address, sizeof *address) != 0 ||
      !set_option(descriptor, SO_REUSEPORT)) {
    const int failure = -errno;
    close(descriptor);
    return failure;
  }
  uv_tcp_init(&thread->loop, &thread->listener);
  const int opened = uv_tcp_open(&thread->listener, descriptor);
  return opened != 0 ? opened : uv_listen((uv_stream_t*)&thread->listener, BACKLOG, connected);
}

static const char* prepare(struct loop_thread* thread, pawl_fase* file, struct cache* cache,
                           unsigned number, unsigned threads, struct sockaddr_in* address) {
  thread->buffer_bytes_max = ALL_BUFFERS_BYTES_MAX / threads;
  if (thread->buffer_bytes_max < THREAD_BUFFERS_BYTES_MIN)
    thread->buffer_bytes_max = THREAD_BUFFERS_BYTES_MIN;
  thread->tidies = number == 0;
  thread->worker.file = file;
  thread->worker.cache = cache;
  thread->worker.inbox = cache_inbox(file, cache, number);
  thread->worker.value = malloc(VALUE_BYTES_MAX);
  if (thread->worker.inbox == NULL || thread->worker.value == NULL) return "no memory";
  if (uv_loop_init(&thread->loop) != 0) return "no event loop";
  thread->loop.data = thread;
  uv_async_init(&thread->loop, &thread->stop, stop);
  uv_timer_init(&thread->loop, &thread->tick);
  uv_timer_start(&thread->tick, tick, TICK_MS, TICK_MS);
  const int listens = listen_on(thread, number == 0, address);
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
  cache_tidy(file, cache, (int64_t)time(NULL));
  if (inet_pton(AF_INET, address, &at.sin_addr) != 1) wrong = "no IPv4 address";
  for (unsigned i = 0; wrong == NULL && i < threads; ++i)
    wrong = prepare(&all[i], file, cache, i, threads, &at);
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
