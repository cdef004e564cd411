// Rounds: what the requests of one turn of the event loop change is committed at once, and then
// their replies leave.
//
// A round that cannot be committed is rolled back, and all its requests are answered with an error:
// those that only read, too, for they may have seen what was rolled back.  When a request finds the
// heap full there is half of it in the round, so the round ends that way.  Behind a round that met
// a full heap or a full disk the next kAloneAfterFull requests are committed one by one, so that
// what does not fit takes nothing with it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client.h"
#include "commands.h"

namespace kv {

class Rounds {
 public:
  // deliver: sends the round's replies of a client, or closes it.
  Rounds(pawl::heap& heap, Store& store, ServerFacts& facts, std::function<void(Client&)> deliver);

  // Serves a request; the reply joins the client's round.
  void serve(Client& client, Arguments arguments);
  // Answers what was no request.
  void refuse(Client& client, std::string_view error);

  // Lets keys expire.
  void sweep();

  // Commits, and delivers the replies.
  void finish();

  // Why the heap takes no more commits; empty while it does.
  const std::string& final_failure() const { return final_failure_; }

 private:
  void run(Client& client, const Command& command, Arguments arguments);
  void join(Client& client);
  // Takes back what the round changed, and makes all its replies this error.
  void fail(std::string_view error);
  // The same, for good.
  void give_up(const pawl::error& failure);
  void commit();

  pawl::heap& heap_;
  Store& store_;
  ServerFacts& facts_;
  std::function<void(Client&)> deliver_;
  std::vector<Client*> clients_;  // those with replies in the round
  bool changed_ = false;
  bool refused_before_ = false;  // the last commit met a full disk
  int alone_ = 0;                // requests to commit one by one
  std::string final_failure_;
};

int64_t wall_clock_ms();

}  // namespace kv
