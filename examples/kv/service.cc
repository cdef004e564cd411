#include "service.h"

#include <chrono>
#include <cstdio>

#include "bounds.h"
#include "text.h"

namespace kv {

int64_t wall_clock_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void Service::join(Client& client) {
  if (client.round_replies == 0) clients_.push_back(&client);
  ++client.round_replies;
}

void Service::greet(Client& client, size_t clients) {
  if (clients_.capacity() < clients) clients_.reserve(2 * clients);
  client.authenticated = server_facts_.password.empty();
  client.reader.owes_login(!client.authenticated);
}

bool Service::is_of_browser(Arguments arguments) {
  if (!equal_ignoring_case(arguments[0], "POST") && !equal_ignoring_case(arguments[0], "Host:")) {
    return false;
  }
  const int64_t now_ms = wall_clock_ms();
  if (now_ms - warned_ms_ >= kWarningPeriodMs) {
    warned_ms_ = now_ms;
    std::fprintf(stderr,
                 "kv: a client sent POST or Host: as a command, as a browser does that a page made "
                 "send requests here; its connection is closed\n");
  }
  return true;
}

void Service::answer(Client& client, Arguments arguments) {
  ++server_facts_.commands;
  if (is_of_browser(arguments)) {
    client.abandon();
    return join(client);
  }
  const size_t before = client.round.size();
  try {
    const Command& command = find_command(arguments);
    if (!client.authenticated && !command.without_login) {
      throw RequestError("NOAUTH Authentication required.");
    }
    run(client, command, arguments);
  } catch (const RequestError& error) {
    client.round.resize(before);
    if (client.round.empty()) empty(client.round);
    Reply(client.round).error(error.what());
    join(client);
  }
}

void Service::take_outcome(Client& client, const Call& call) {
  join(client);
  if (call.quit) client.ended = true;
  client.authenticated = call.authenticated;
  client.reader.owes_login(!client.authenticated);
}

void Service::end_service(const char* why) noexcept {
  has_failed_ = true;
  std::snprintf(final_failure_.data(), final_failure_.size(), "%s", why);
}

void Service::refuse(Client& client, std::string_view error) {
  Reply(client.round).error(error);
  join(client);
  client.ended = true;
}

void Service::deliver_all() {
  for (Client* client : clients_) {
    client->round_replies = 0;
    deliver_(*client);
  }
  clients_.clear();
}

}  // namespace kv
