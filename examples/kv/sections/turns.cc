#include "turns.h"

namespace kv {

void Turns::run(Client& client, const Command& command, Arguments arguments) {
  Reply reply(client.round);
  Call call{arguments, reply, store_, facts_, wall_clock_ms()};
  command.handler(call);
  join(client);
  if (call.quit) client.ended = true;
}

}  // namespace kv
