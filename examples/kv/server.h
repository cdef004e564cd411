// The event loop: turns, at whose ends replies leave.
#pragma once

#include <uv.h>

#include "connections.h"
#include "service.h"

namespace kv {

class Server {
 public:
  // serves_no_more: what it means that the service failed for good, told on standard error.
  Server(const Settings& settings, Service& service, ServerFacts& facts,
         std::string serves_no_more);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens.  Throws std::runtime_error when that cannot be done.
  void start();
  // Serves until SIGTERM or SIGINT, or until nothing can be served any more; returns the program's
  // exit status.
  int run();

 private:
  void end_turn();

  Service& service_;
  std::string serves_no_more_;
  uv_check_t turn_end_{};  // runs behind each poll for what clients sent
  uv_timer_t sweep_timer_{};
  uv_signal_t terminate_{}, interrupt_{};
  Connections connections_;  // the last: it closes what is on its loop
};

}  // namespace kv
