#include "rounds.h"

#include <cerrno>
#include <chrono>
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

int64_t wall_clock_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

Rounds::Rounds(pawl::heap& heap, Store& store, ServerFacts& facts,
               std::function<void(Client&)> deliver)
    : heap_(heap), store_(store), facts_(facts), deliver_(std::move(deliver)) {}

void Rounds::join(Client& client) {
  if (client.round_replies == 0) clients_.push_back(&client);
  ++client.round_replies;
}

void Rounds::serve(Client& client, Arguments arguments) {
  if (alone_ > 0) {
    finish();
    if (!final_failure_.empty()) {
      join(client);
      return fail(cannot_write(final_failure_));
    }
  }
  ++facts_.commands;
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

void Rounds::refuse(Client& client, std::string_view error) {
  Reply(client.round).error(error);
  join(client);
  client.ended = true;
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
  for (Client* client : clients_) {
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
  for (Client* client : std::exchange(clients_, {})) {
    client->round_replies = 0;
    deliver_(*client);
  }
}

}  // namespace kv
