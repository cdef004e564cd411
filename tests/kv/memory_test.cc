// Memory that runs out in the server examples/kv: at each allocation of each request, alone or with
// all behind it, the request has happened whole or not at all, and the answer says which.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kv/served.h"
#include "support/failing_allocations.h"
#include "support/temporary_directory.h"

namespace kv {
namespace {

constexpr long kNone = -1;
constexpr long kAllocationsMax = 100'000;

constexpr const char* kData =
    "SET string some text that is longer than what a string holds by itself\r\n"
    "SET number 41\r\n"
    "RPUSH list first-element-that-is-rather-long second-element-that-is-rather-long third\r\n"
    "HSET hash field-that-is-rather-long-indeed value-that-is-rather-long-indeed number 1\r\n"
    "SADD set one-member-that-is-rather-long another-member-that-is-rather-long three four five\r\n"
    "ZADD ranks 1 one-member-that-is-rather-long 2 another-member-that-is-rather-long 3 c\r\n"
    "SET expiring value EX 100000\r\n";

const std::vector<std::string> kRequests = {
    "SET new a-value-that-is-longer-than-what-a-string-holds-by-itself EX 10000",
    "SET string another-value-that-is-longer-than-what-a-string-holds-by-itself-and-the-old-one "
    "GET",
    "MSET a a-value-that-is-longer-than-a-string-holds b another-value-that-is-longer-than-that",
    "APPEND string more-text-that-makes-it-longer-than-it-was-and-than-it-had-room-for",
    "INCR number",
    "INCRBY list-that-is-new 7",
    "RPUSH list fourth-element-that-is-rather-long fifth-element-that-is-rather-long",
    "LPUSH new-list-of-a-rather-long-name first-element-that-is-rather-long second",
    "LPOP list 3",
    "RPOP list 2",
    "LRANGE list 0 -1",
    "HSET hash another-field-that-is-rather-long another-value-that-is-rather-long and more",
    "HINCRBY hash number 99999999999999999",
    "HDEL hash field-that-is-rather-long-indeed number",
    "SADD set a-new-member-that-is-rather-long another-new-member-that-is-rather-long 6 7 8 9",
    "SREM set three four",
    "SPOP set 9",
    "ZADD ranks 9 one-member-that-is-rather-long 4 a-new-member-that-is-rather-long",
    "ZINCRBY ranks 5 another-new-member-that-is-rather-long",
    "ZREM ranks c one-member-that-is-rather-long",
    "ZRANGE ranks 0 -1 WITHSCORES",
    "EXPIRE string 100000",
    "PERSIST expiring",
    "DEL string list hash set ranks",
    "FLUSHALL",
    "KEYS *",
    "INFO",
    "no-such-command-of-a-rather-long-name with arguments",
    "LPOP string",
};

std::unique_ptr<test::Served> opened(const std::string& path) {
  auto served = std::make_unique<test::Served>(path);
  served->connect();
  return served;
}

void fill(test::Served& served) {
  served.turn("FLUSHALL\r\n");
  served.turn(kData);
}

// The request with the n-th allocation failing; how many there were.
long turn_with_failure(test::Served& served, const std::string& request, long n, bool all_after,
                       std::string& reply) {
  allocations = 0;
  all_after_fail = all_after;
  failing = n;
  const std::string& answered = served.turn(request);
  failing = kNone;
  reply = answered;
  return allocations;
}

void expect_whole(const std::string& path, const std::string& words, bool all_after) {
  SCOPED_TRACE(words + (all_after ? ", and all behind" : ""));
  const std::string request = words + "\r\n";
  auto served = opened(path);
  fill(*served);
  const std::string before = test::dump(served->store());
  const std::string reply_due = served->turn(request);
  const std::string after = test::dump(served->store());
  for (long n = 0; n < kAllocationsMax; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    fill(*served);
    ASSERT_EQ(test::dump(served->store()), before);
    std::string reply;
    const long made = turn_with_failure(*served, request, n, all_after, reply);
    bool has_failed = served->has_failed();
    try {
      if (!has_failed) served->heap().rollback();  // what is not committed goes
    } catch (const pawl::error&) {                 // the commit was the last one of this mapping
      has_failed = true;
    }
    if (has_failed) {
      served.reset();
      served = opened(path);
    }
    const std::string now = test::dump(served->store());
    // What is drawn by lot comes in any order.
    const bool is_acknowledged = !reply.empty() && (reply[0] != '-' || reply == reply_due);
    if (is_acknowledged) {
      EXPECT_EQ(now, after);
    } else if (has_failed || reply.empty()) {
      EXPECT_TRUE(now == before || now == after) << now;
    } else {
      EXPECT_EQ(reply.substr(0, 4), "-OOM") << reply;
      EXPECT_EQ(now, before);
    }
    if (testing::Test::HasFailure() || made <= n) return;
    served->connect();
  }
}

TEST(OutOfMemoryInTheServer, LeftHalfOfARequestBehind) {
  const pawl::test::TemporaryDirectory directory(
      std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : nullptr);
  for (const std::string& words : kRequests) {
    for (const bool all_after : {false, true}) {
      expect_whole(directory / "kv.heap", words, all_after);
      if (HasFailure()) return;
    }
  }
}

// More keys than the heap has room for, which live for a millisecond each.
TEST(ExpiredKeys, FilledTheHeap) {
  const pawl::test::TemporaryDirectory directory;
  const auto served = opened(directory / "kv.heap");
  const std::string value(500, 'x');
  constexpr int kTurns = 2000;
  constexpr int kKeysATurn = 100;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::string requests;
    for (int key = 0; key < kKeysATurn; ++key) {
      requests +=
          "SET session:" + std::to_string(turn * kKeysATurn + key) + " " + value + " PX 1\r\n";
    }
    ASSERT_EQ(served->turn(requests).find('-'), std::string::npos) << turn;
  }
}

std::string request_of_expiring(int number, size_t value_bytes, int64_t at_ms) {
  return "SET k" + std::to_string(number) + " " + std::string(value_bytes, 'x') + " PXAT " +
         std::to_string(at_ms) + "\r\n";
}

void wait_until(int64_t at_ms) {
  while (wall_clock_ms() <= at_ms) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(ExpiredKeys, MadeNoRoomForARequest) {
  const pawl::test::TemporaryDirectory directory;
  const auto served = opened(directory / "kv.heap");
  constexpr int kKeysMax = 20'000;  // more than there is room for
  constexpr int kKeysATurn = 200;
  constexpr size_t kValueBytes = 5000;
  const int64_t at_ms = wall_clock_ms() + 5000;
  int keys = 0;
  // What does not fit any more takes its turn with it, so one by one at the end.
  for (const int at_once : {kKeysATurn, 1}) {
    bool has_room = true;
    while (has_room && keys < kKeysMax) {
      std::string requests;
      for (int n = 0; n < at_once; ++n) {
        requests += request_of_expiring(keys++, kValueBytes, at_ms);
      }
      has_room = served->turn(requests).find('-') == std::string::npos;
    }
  }
  ASSERT_LT(keys, kKeysMax);
  wait_until(at_ms);
  // Each needs more room than a request of its kind makes on its way.
  const std::string value(kBulkBytesMax - 100, 'x');
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(served->turn("SET " + std::string(key) + " " + value + "\r\n"), "+OK\r\n") << key;
  }
}

TEST(ExpiredKeys, AreGoneAfterAFewSweepsHoweverMany) {
  const pawl::test::TemporaryDirectory directory;
  const auto served = opened(directory / "kv.heap");
  constexpr int kKeys = 20'000;
  constexpr size_t kValueBytes = 500;
  const int64_t at_ms = wall_clock_ms() + 2000;
  std::string requests;
  for (int key = 0; key < kKeys; ++key) requests += request_of_expiring(key, kValueBytes, at_ms);
  served->turn(requests);
  wait_until(at_ms);
  constexpr int kSweeps = 20;  // a machine may be busy
  for (int sweep = 0; sweep < kSweeps; ++sweep) served->sweep();
  EXPECT_EQ(served->store().size(), 0U);
}

// A round that ends within a turn may close the client whose next request is in hand.
TEST(ClosedClients, WereServedAgain) {
  const pawl::test::TemporaryDirectory directory;
  const auto served = opened(directory / "kv.heap");
  const std::string value(kBulkBytesMax - 100, 'x');
  int keys = 0;
  while (served->turn("SET k" + std::to_string(keys) + " " + value + "\r\n")[0] == '+') ++keys;
  // From here on requests are committed one by one.
  served->close_at_next_delivery();
  served->turn("DEL k0\r\nDEL k1\r\n");
  EXPECT_EQ(served->store().size(), static_cast<size_t>(keys) - 1);
}

// LPOP and its like took what their reply then had no room for.
TEST(ReplyBeyondItsBound, TookTheElementsAll) {
  const pawl::test::TemporaryDirectory directory;
  const auto served = opened(directory / "kv.heap");
  const std::string element(kBulkBytesMax - 100, 'x');
  for (const std::string_view type : {"RPUSH", "SADD"}) {
    for (const char number : {'1', '2', '3', '4', '5'}) {
      served->turn("*3\r\n$" + std::to_string(type.size()) + "\r\n" + std::string(type) +
                   "\r\n$1\r\nk\r\n$" + std::to_string(element.size() + 1) + "\r\n" + number +
                   element + "\r\n");
    }
    const std::string before = test::dump(served->store());
    for (const char* request : {"LPOP k 5\r\n", "RPOP k 5\r\n", "SPOP k 5\r\n"}) {
      EXPECT_EQ(served->turn(request)[0], '-') << request;
      served->heap().rollback();
      EXPECT_EQ(test::dump(served->store()), before) << request;
    }
    served->turn("DEL k\r\n");
  }
}

TEST(OwesThePassword, SentLinesOfManyWords) {
  const pawl::test::TemporaryDirectory directory;
  const auto served = opened(directory / "kv.heap");
  served->require_password("secret");
  constexpr size_t kAnswerBytes = 19;
  const auto answer_to = [&served](const std::string& line) {
    served->connect();
    const std::string answer = served->turn(line).substr(0, kAnswerBytes);
    return answer + (served->is_open() ? "" : ", closed");
  };
  EXPECT_EQ(answer_to("GET a b c d e f g h i\r\n"), "-ERR wrong number o");
  EXPECT_EQ(answer_to("GET a b c d e f g h i j\r\n"), "-ERR Protocol error, closed");
  EXPECT_EQ(answer_to("GET " + std::string(kLoginBulkBytesMax, 'x') + "\r\n"),
            "-ERR Protocol error, closed");
  EXPECT_EQ(answer_to("GET " + std::string(kLoginBulkBytesMax, 'x')),
            "-ERR Protocol error, closed");
}

}  // namespace
}  // namespace kv
