// Each command's sections have ended when it has: so nothing is to be done at the end of a turn but
// to let the replies go.
#pragma once

#include "service.h"
#include "store.h"

namespace kv {

class Turns : public Service {
 public:
  Turns(Store& store, ServerFacts& facts) : Service(facts), store_(store), facts_(facts) {}

  void sweep() override { store_.sweep(); }

 private:
  void run(Client& client, const Command& command, Arguments arguments) override;

  Store& store_;
  ServerFacts& facts_;
};

}  // namespace kv
