// The server: the event loop's turns, each of which is a round.
#pragma once

#include <uv.h>

#include "commands.h"
#include "connections.h"
#include "rounds.h"

namespace kv {

class Server {
 public:
  Server(const Settings& settings, pawl::heap& heap, Store& store);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens.  Throws std::runtime_error when that cannot be done.
  void start();
  // Serves until SIGTERM or SIGINT, or until the heap takes no more commits; returns the program's
  // exit status.
  int run();

 private:
  void end_round();

  ServerFacts facts_;
  Rounds rounds_;
  uv_check_t round_end_{};  // runs behind each poll for what clients sent
  uv_timer_t sweep_timer_{};
  uv_signal_t terminate_{}, interrupt_{};
  Connections connections_;  // the last: it closes what is on its loop
};

}  // namespace kv
