// Memory that runs out in the server examples/kv: at each allocation of each request, alone or with
// all behind it, the request has happened whole or not at all, and the answer says which.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
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

}  // namespace
}  // namespace kv
