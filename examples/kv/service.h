// What is between the connections and the data set: requests come in, and at the end of each turn
// of the event loop the replies to all that came in it leave.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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

  // A client is new; so many there are with it.  With memory for all of them, a turn ends in order
  // even when there is no more memory.
  void greet(Client& client, size_t clients);

  // Serves a request; the reply waits for the end of the turn.  Throws std::bad_alloc where the
  // client cannot be answered, and has changed nothing then.
  virtual void serve(Client& client, Arguments arguments) { answer(client, arguments); }
  // Answers what was no request.
  void refuse(Client& client, std::string_view error);
  // Housekeeping, now and then.
  virtual void sweep() = 0;
  // The turn ends: delivers the replies.
  virtual void finish() { deliver_all(); }

  // Whether nothing can be served any more, and why.
  bool has_failed() const { return has_failed_; }
  const char* final_failure() const { return final_failure_.data(); }

 protected:
  // Finds the command, runs it, and answers as errors of the request are answered.
  void answer(Client& client, Arguments arguments);
  virtual void run(Client& client, const Command& command, Arguments arguments) = 0;
  // A command has run.
  void take_outcome(Client& client, const Call& call);
  // The client has one reply more in this turn.
  void join(Client& client);
  void deliver_all();

  const std::vector<Client*>& clients() const { return clients_; }
  void end_service(const char* why) noexcept;

 private:
  // Whether that is how a browser begins, which a page made send requests to this server.
  bool is_of_browser(Arguments arguments);

  ServerFacts& server_facts_;
  int64_t warned_ms_ = 0;
  std::function<void(Client&)> deliver_;
  std::vector<Client*> clients_;  // those with replies in this turn
  bool has_failed_ = false;
  std::array<char, 256> final_failure_{};  // there may be no memory for longer ones
};

int64_t wall_clock_ms();

}  // namespace kv
