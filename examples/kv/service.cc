#include "service.h"

#include <chrono>
#include <utility>

namespace kv {

int64_t wall_clock_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void Service::join(Client& client) {
  if (client.round_replies == 0) clients_.push_back(&client);
  ++client.round_replies;
}

void Service::answer(Client& client, Arguments arguments) {
  ++server_facts_.commands;
  const size_t before = client.round.size();
  try {
    run(client, find_command(arguments), arguments);
  } catch (const RequestError& error) {
    client.round.resize(before);
    Reply(client.round).error(error.what());
    join(client);
  } catch (const ReplyTooLarge&) {
    client.round.resize(before);
    client.ended = client.abandoned = true;
    join(client);
  }
}

void Service::refuse(Client& client, std::string_view error) {
  Reply(client.round).error(error);
  join(client);
  client.ended = true;
}

void Service::deliver_all() {
  for (Client* client : std::exchange(clients_, {})) {
    client->round_replies = 0;
    deliver_(*client);
  }
}

}  // namespace kv
