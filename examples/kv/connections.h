// Clients: accepts them, reads their requests, sends their replies.
#pragma once

#include <uv.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "client.h"
#include "service.h"

namespace kv {

struct Settings {
  std::string bind_address = "127.0.0.1";
  int port = 6380;          // 0: no TCP
  std::string unix_socket;  // empty: none
  std::string password;     // empty: none is needed
};

class Connections {
 public:
  Connections(const Settings& settings, Service& service, ServerFacts& facts);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  uv_loop_t* loop() { return &loop_; }

  // Throws std::runtime_error when that cannot be done.
  void listen();

  // Sends the client's replies of a round that is committed, or closes it.
  void deliver(Client& client);

  // Closes all clients and everything else of the loop.
  void close_all();

  // Housekeeping, now and then.
  void tidy();

 private:
  void listen_on_tcp();
  void listen_on_unix_socket();
  void accept(uv_stream_t* listener);
  void make_client(uv_stream_t* listener);
  void take(Client& client, ssize_t count, const char* bytes);
  void serve(Client& client);
  void resume();
  void send(Client& client);
  void settle(Client& client);
  void start_reading(Client& client);
  void stop_reading(Client& client);
  void close(Client& client);
  // Counts what its buffers take now, and keeps what all take within kAllBuffersBytesMax.
  void count(Client& client);

  Settings settings_;
  Service& service_;
  ServerFacts& facts_;
  uv_loop_t loop_{};
  uv_tcp_t tcp_listener_{};
  uv_pipe_t unix_listener_{};
  uv_idle_t resumption_{};  // keeps the loop turning while there are clients in resumable_
  std::unordered_map<Client*, std::unique_ptr<Client>> clients_;
  // Clients that sent what was put off while their replies left, and those of them in hand.
  std::vector<Client*> resumable_, resuming_;
  std::vector<uv_stream_t*> waiting_listeners_;  // listeners whose client waits for memory
  std::unique_ptr<char[]> read_buffer_;          // one for all: what is read is taken at once
};

}  // namespace kv
