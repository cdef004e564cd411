// Rounds: what the requests of one turn of the event loop change is committed at once, and then
// their replies leave.
//
// A round that cannot be committed is rolled back, and all its requests are answered with an error:
// those that only read, too, for they may have seen what was rolled back.  When a request finds the
// heap full there is half of it in the round, so the round ends that way.  Behind a round that met
// a full heap or a full disk the next kAloneAfterFull requests are committed one by one, so that
// what does not fit takes nothing with it.  The same holds when the process gets no memory; when it
// gets none to roll back with, the server ends, for half of a round is in its memory.  A request
// that is the first of its round is tried once more, when keys that expired have made room.
#pragma once

#include "service.h"
#include "store.h"

namespace kv {

struct RoundFacts : ServerFacts {
  pawl::heap* heap = nullptr;
  uint64_t rounds = 0;       // those that were committed
  uint64_t rolled_back = 0;  // and those that could not be
};

class Rounds : public Service {
 public:
  // The facts must name the heap.
  Rounds(Store& store, RoundFacts& facts);

  // The reply joins the client's round.
  void serve(Client& client, Arguments arguments) override;
  // Lets keys expire, for kSweepMsMax at most.
  void sweep() override;
  // Commits, and delivers the replies.
  void finish() override;

 private:
  void run(Client& client, const Command& command, Arguments arguments) override;
  // False when there is no memory for it; half of it may be done then.
  bool serve_with_memory(Client& client, Arguments arguments);
  // Takes back what was half done, and lets keys expire; false when none did.
  bool make_room() noexcept;
  // Takes back what the round changed.
  void roll_back() noexcept;
  // The same, and makes all its replies this error.
  void fail(const char* error, const char* why = "") noexcept;
  // The same, for good.
  void give_up(const pawl::error& failure) noexcept;
  void commit();

  pawl::heap& heap_;
  Store& store_;
  RoundFacts& facts_;
  bool changed_ = false;
  bool refused_before_ = false;  // the last commit met a full disk
  int alone_ = 0;                // requests to commit one by one
};

}  // namespace kv
