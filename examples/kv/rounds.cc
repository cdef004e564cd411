#include "rounds.h"

#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include "limits.h"

namespace kv {
namespace {

constexpr std::string_view kFull = "OOM command not allowed when used memory > 'maxmemory'.";

std::string cannot_write(const std::string& why) {
  return "MISCONF Errors writing to the AOF file: " + why;
}

}  // namespace

Rounds::Rounds(Store& store, RoundFacts& facts)
    : Service(facts), heap_(*facts.heap), store_(store), facts_(facts) {}

void Rounds::serve(Client& client, Arguments arguments) {
  if (alone_ > 0) {
    finish();
    if (!final_failure_.empty()) {
      join(client);
      return fail(cannot_write(final_failure_));
    }
  }
  try {
    answer(client, arguments);
  } catch (const std::bad_alloc&) {
    join(client);
    fail(kFull);
    alone_ = kAloneAfterFull;
  } catch (const pawl::error& failure) {  // the heap is damaged
    join(client);
    give_up(failure);
  }
}

void Rounds::run(Client& client, const Command& command, Arguments arguments) {
  Reply reply(client.round);
  Call call{arguments, reply, store_, facts_, wall_clock_ms()};
  // Any command may meet a key that expired; a commit that finds nothing changed costs little, but
  // not nothing.
  const size_t expiring = store_.expiring();
  changed_ |= command.writes;
  command.handler(call);
  changed_ |= store_.expiring() != expiring;
  join(client);
  if (call.quit) client.ended = true;
}

void Rounds::sweep() {
  try {
    changed_ |= store_.sweep(wall_clock_ms()) > 0;
  } catch (const pawl::error& failure) {  // the heap is damaged
    give_up(failure);
  }
}

void Rounds::give_up(const pawl::error& failure) {
  final_failure_ = failure.what();
  fail(cannot_write(failure.code().message()));
}

void Rounds::fail(std::string_view error) {
  for (Client* client : clients()) {
    client->round.clear();
    for (size_t left = client->round_replies; left > 0; --left) Reply(client->round).error(error);
  }
  changed_ = false;
  ++facts_.rolled_back;
  try {
    if (final_failure_.empty()) heap_.rollback();
  } catch (const pawl::error& failure) {
    final_failure_ = failure.what();
  }
}

void Rounds::commit() {
  try {
    heap_.sync();
    changed_ = false;
    ++facts_.rounds;
    refused_before_ = false;
    if (alone_ > 0) --alone_;
  } catch (const pawl::error& failure) {
    if (failure.code().value() != ENOSPC) return give_up(failure);
    if (!std::exchange(refused_before_, true)) {
      std::fprintf(stderr, "kv: requests are refused until there is space: %s\n", failure.what());
    }
    fail(cannot_write(failure.code().message()));
    alone_ = kAloneAfterFull;
  }
}

void Rounds::finish() {
  if (changed_) commit();
  deliver_all();
}

}  // namespace kv
