#include "turns.h"

namespace kv {

void Turns::run(Client& client, const Command& command, Arguments arguments) {
  Reply reply(client.round);
  Call call{arguments, reply, store_, facts_, wall_clock_ms(), client.authenticated};
  command.handler(call);
  take_outcome(client, call);
}

}  // namespace kv
