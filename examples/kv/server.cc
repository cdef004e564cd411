#include "server.h"

#include <csignal>
#include <cstdio>
#include <utility>

#include "bounds.h"

namespace kv {

Server::Server(const Settings& settings, Service& service, ServerFacts& facts,
               std::string serves_no_more)
    : service_(service),
      serves_no_more_(std::move(serves_no_more)),
      connections_(settings, service, facts) {
  service_.set_delivery([this](Client& client) { connections_.deliver(client); });
  facts.port = static_cast<unsigned>(settings.port);
  facts.password = settings.password;
  facts.started_ms = wall_clock_ms();
}

void Server::start() {
  uv_loop_t* loop = connections_.loop();
  connections_.listen();

  uv_check_init(loop, &turn_end_);
  turn_end_.data = this;
  uv_check_start(&turn_end_,
                 [](uv_check_t* handle) { static_cast<Server*>(handle->data)->end_turn(); });

  uv_timer_init(loop, &sweep_timer_);
  sweep_timer_.data = this;
  const auto sweep = [](uv_timer_t* timer) {
    auto* server = static_cast<Server*>(timer->data);
    server->service_.sweep();
    server->connections_.tidy();
  };
  uv_timer_start(&sweep_timer_, sweep, kSweepPeriodMs, kSweepPeriodMs);

  for (const auto& [handle, number] : {std::pair{&terminate_, SIGTERM}, {&interrupt_, SIGINT}}) {
    uv_signal_init(loop, handle);
    handle->data = this;
    const auto stop = [](uv_signal_t* signal, int) { uv_stop(signal->loop); };
    uv_signal_start(handle, stop, number);
  }
}

int Server::run() {
  uv_run(connections_.loop(), UV_RUN_DEFAULT);
  // A signal may have come between requests and the end of their turn.
  if (!service_.has_failed()) service_.finish();
  connections_.close_all();
  if (!service_.has_failed()) return 0;
  std::fprintf(stderr,
               "kv: %s: %s\n"
               "kv: what was acknowledged is in the file; start again to go on from there\n",
               serves_no_more_.c_str(), service_.final_failure());
  return 1;
}

void Server::end_turn() {
  service_.finish();
  if (service_.has_failed()) uv_stop(connections_.loop());
}

}  // namespace kv
