// What is between the connections and the data set: requests come in, and at the end of each turn
// of the event loop the replies to all that came in it leave.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "commands.h"
#include "facts.h"

namespace kv {

class Service {
 public:
  explicit Service(ServerFacts& facts) : server_facts_(facts) {}
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // deliver: sends the client's replies of this turn, or closes it.
  void set_delivery(std::function<void(Client&)> deliver) { deliver_ = std::move(deliver); }

  // Serves a request; the reply waits for the end of the turn.
  virtual void serve(Client& client, Arguments arguments) { answer(client, arguments); }
  // Answers what was no request.
  void refuse(Client& client, std::string_view error);
  // Housekeeping, now and then.
  virtual void sweep() = 0;
  // The turn ends: delivers the replies.
  virtual void finish() { deliver_all(); }

  // Why nothing can be served any more; empty while it can.
  const std::string& final_failure() const { return final_failure_; }

 protected:
  // Finds the command, runs it, and answers as errors of the request are answered.
  void answer(Client& client, Arguments arguments);
  virtual void run(Client& client, const Command& command, Arguments arguments) = 0;
  // The client has one reply more in this turn.
  void join(Client& client);
  void deliver_all();

  const std::vector<Client*>& clients() const { return clients_; }
  std::string final_failure_;

 private:
  ServerFacts& server_facts_;
  std::function<void(Client&)> deliver_;
  std::vector<Client*> clients_;  // those with replies in this turn
};

int64_t wall_clock_ms();

}  // namespace kv
