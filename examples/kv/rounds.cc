#include "rounds.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "bounds.h"

namespace kv {
namespace {

constexpr const char* kFull = "OOM command not allowed when used memory > 'maxmemory'.";
constexpr const char* kCannotWrite = "MISCONF Errors writing to the AOF file: ";

const char* reason_of(const pawl::error& failure) {
  const char* reason = strerrordesc_np(failure.code().value());
  return reason == nullptr ? "unknown error" : reason;
}

// Nothing is lost, and the same call may succeed when there is space again, or a limit was raised.
bool may_succeed_later(const pawl::error& failure) {
  const int number = failure.code().value();
  return number == ENOSPC || number == EDQUOT || number == EFBIG || number == EACCES;
}

}  // namespace

Rounds::Rounds(Store& store, RoundFacts& facts)
    : Service(facts), heap_(*facts.heap), store_(store), facts_(facts) {}

void Rounds::serve(Client& client, Arguments arguments) {
  if (alone_ > 0) finish();
  // Its buffers went with it, and the words of this request with them.
  if (client.closing) return;
  if (has_failed()) {
    join(client);
    return fail(kCannotWrite, final_failure());
  }
  const bool is_first = clients().empty();
  if (serve_with_memory(client, arguments)) return;
  if (is_first && make_room()) {
    empty(client.round);
    if (serve_with_memory(client, arguments)) return;
  }
  join(client);
  fail(kFull);
  alone_ = kAloneAfterFull;
}

bool Rounds::serve_with_memory(Client& client, Arguments arguments) {
  // Any command may meet a key that expired; a commit that finds nothing changed costs little, but
  // not nothing.
  const size_t expiring = store_.expiring();
  try {
    answer(client, arguments);
    changed_ |= store_.expiring() != expiring;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const pawl::error& failure) {
    if (may_succeed_later(failure)) return false;  // the file may not grow
    join(client);                                  // the heap is damaged
    give_up(failure);
  }
  return true;
}

bool Rounds::make_room() noexcept {
  roll_back();
  if (has_failed()) return false;
  sweep();
  if (!changed_) return false;
  commit();
  return !has_failed();
}

void Rounds::run(Client& client, const Command& command, Arguments arguments) {
  Reply reply(client.round);
  Call call{arguments, reply, store_, facts_, wall_clock_ms(), client.authenticated};
  changed_ |= command.writes;
  if (command.writes) store_.sweep(call.now_ms, kSweepKeysWithRequest);
  command.handler(call);
  take_outcome(client, call);
}

void Rounds::sweep() {
  try {
    const int64_t until_ms = wall_clock_ms() + kSweepMsMax;
    for (int64_t now_ms = 0; now_ms < until_ms;) {
      now_ms = wall_clock_ms();
      const size_t erased = store_.sweep(now_ms, kSweepKeysAtOnce);
      changed_ |= erased > 0;
      // A small commit may have room on a disk that is full.
      if (erased < kSweepKeysAtOnce || refused_before_) break;
    }
  } catch (const std::bad_alloc&) {
    fail(kFull);
  } catch (const pawl::error& failure) {  // the heap is damaged
    give_up(failure);
  }
}

void Rounds::give_up(const pawl::error& failure) noexcept {
  end_service(failure.what());
  fail(kCannotWrite, reason_of(failure));
}

void Rounds::roll_back() noexcept {
  changed_ = false;
  try {
    if (!has_failed()) heap_.rollback();
  } catch (const std::exception& failure) {  // half of a round is in the memory
    end_service(failure.what());
  }
}

void Rounds::fail(const char* error, const char* why) noexcept {
  ++facts_.rolled_back;
  roll_back();
  for (Client* client : clients()) {
    if (client->closing) continue;
    empty(client->round);
    try {
      const std::string text = std::string(error) + why;
      for (size_t n = 0; n < client->round_replies; ++n) Reply(client->round).error(text);
    } catch (const std::exception&) {  // no memory for the replies
      client->abandon();
    }
  }
}

void Rounds::commit() {
  try {
    heap_.sync();
    changed_ = false;
    ++facts_.rounds;
    refused_before_ = false;
    if (alone_ > 0) --alone_;
  } catch (const std::bad_alloc&) {
    fail(kFull);
    alone_ = kAloneAfterFull;
  } catch (const pawl::error& failure) {
    if (!may_succeed_later(failure)) return give_up(failure);
    if (!std::exchange(refused_before_, true)) {
      std::fprintf(stderr, "kv: requests that cannot be committed are refused: %s\n",
                   failure.what());
    }
    fail(kCannotWrite, reason_of(failure));
    alone_ = kAloneAfterFull;
  }
}

void Rounds::finish() {
  if (changed_) commit();
  deliver_all();
}

}  // namespace kv
