// Any bytes as what clients send to examples/kv, with a thousandth of its bounds: it answers within
// them, whatever it refuses has changed nothing, and all memory is given back.
//
// The input: a byte of flags, one of how large the pieces are in which the rest arrives.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_in_use.h"
#include "fuzz/require.h"
#include "kv/served.h"

namespace pawl::fuzz {
namespace {

enum Flag : unsigned { kPassword = 1 };
constexpr std::size_t kBytesAt = 2;
constexpr std::size_t kRequestsMax = 2000;
constexpr const char* kSecret = "secret";
// Of the whole process: the client's buffers, what a command works with, and pages that wait to be
// written into the heap's file.
constexpr std::size_t kMemoryMax = std::size_t{64} << 20;

Seed seed(const char* name, unsigned flags, unsigned piece, std::string_view text) {
  Seed made{name, {static_cast<std::byte>(flags), static_cast<std::byte>(piece)}};
  for (const char c : text) made.bytes.push_back(static_cast<std::byte>(c));
  return made;
}

std::string heap_file() {
  const char* directory = std::getenv("PAWL_TEST_DIR");
  if (directory == nullptr)
    directory = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : ".";
  std::string path = std::string(directory) + "/pawl-fuzz-XXXXXX";
  require(mkdtemp(path.data()) != nullptr, "a directory can be made");
  return path + "/kv.heap";
}

// The server, for all inputs: to make a heap takes longer than to empty it.
class OneServer {
 public:
  OneServer() : path_(heap_file()), served_(std::in_place, path_) {}
  OneServer(const OneServer&) = delete;
  OneServer& operator=(const OneServer&) = delete;
  ~OneServer() {
    served_.reset();
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
  }
  kv::test::Served& operator*() { return *served_; }

 private:
  std::string path_;
  std::optional<kv::test::Served> served_;
};

void check_buffers(const kv::Client& client) {
  const std::size_t input = 2 * (kv::kRequestBytesMax + kv::kReadBytes);
  const std::size_t words = 4 * sizeof(std::string_view) * (kv::kArgumentsMax + 1);
  const std::size_t output = 2 * (kv::kOutputBytesMax + kv::kOutputBytesPause);
  require(client.buffer_bytes() <= input + words + 2 * output, "a client's buffers are bounded");
  require(client.round.size() <= kv::kOutputBytesMax + kv::kOutputBytesPause,
          "what waits to be sent is bounded");
}

}  // namespace

const std::size_t kPrologueBytes = kBytesAt;

std::vector<Seed> seeds() {
  return {
      seed("strings", 0, 0,
           "SET a 1\nINCR a\nAPPEND a xyz\nGET a\nSTRLEN a\nMSET a 1 b 2 c 3\nMGET a b c d\nSETNX "
           "a 2\n"
           "SET a 9223372036854775807\nINCRBY a 1\nDECRBY a -9223372036854775808\nSET a x EX 100 "
           "GET\n"
           "SET a y KEEPTTL\nSET a z PXAT 1 NX\n"),
      seed("keys", 0, 7,
           "SET a 1\nEXPIRE a 100 NX\nTTL a\nPERSIST a\nKEYS [a-c]*\nSCAN 0 MATCH * COUNT 10 TYPE "
           "string\n"
           "TYPE a\nPEXPIRE a -1\nEXISTS a a\nDBSIZE\nDEL a\nFLUSHALL ASYNC\n"),
      seed("lists", 0, 3,
           "RPUSH l a b c\nLPUSH l d\nLRANGE l 0 -1\nLINDEX l -1\nLPOP l 2\nRPOP l\nLLEN l\nLPOP l "
           "0\n"),
      seed("hashes", 0, 0,
           "HSET h a 1 b 2\nHGET h a\nHMGET h a b c\nHGETALL h\nHINCRBY h a 5\nHDEL h a b\nHLEN h\n"
           "HKEYS h\nHVALS h\nHEXISTS h a\n"),
      seed("sets", 0, 0,
           "SADD s a b c d\nSPOP s 2\nSMEMBERS s\nSISMEMBER s a\nSREM s a b\nSCARD s\n"),
      seed("ranks", 0, 0,
           "ZADD z 1 a 2 b inf c\nZADD z XX GT CH 5 a\nZINCRBY z -inf c\nZRANGE z 0 -1 WITHSCORES "
           "REV\n"
           "ZRANGE z (1 +inf BYSCORE LIMIT 1 2\nZRANGE z - [b BYLEX\nZREVRANGEBYSCORE z 5 1 LIMIT "
           "0 1\n"
           "ZRANK z b\nZSCORE z a\nZREM z a\nZRANGEBYSCORE z -inf inf\nZREVRANGE z 0 0\n"),
      seed(
          "arrays", 0, 5,
          "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\n*-1\r\n"
          "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*1\r\n$65537\r\n"),
      seed("amplified", 0, 0,
           "APPEND a 0123456789012345678901234567890123456789\nRPUSH l a a a a a a a a a a a a a a "
           "a\n"
           "MGET a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a "
           "a\n"),
      seed("password", kPassword, 0,
           "GET a\nAUTH secret\nSET a 1\nAUTH default x\nHELLO 2 AUTH default secret\nQUIT\n"),
      seed("login", kPassword, 1, "*11\r\n"),
      seed("browser", 0, 0, "PING\nPOST / HTTP/1.1\nHost: localhost\n\nSET a 1\n"),
      seed("quotes", 0, 0, "SET \"a\\x00\\n\" 'it\\'s'\nGET \"a\\x00\\n\"\nECHO \"open\n"),
      seed("told", 0, 0, "INFO\nCONFIG GET *\nCOMMAND COUNT\nHELLO 2\nSELECT 0\nPING\nQUIT\n"),
  };
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size < kBytesAt) return 0;
  static OneServer server;
  kv::test::Served& served = *server;
  served.require_password((data[0] & kPassword) != 0 ? kSecret : "");
  served.connect();
  const std::size_t before = memory_in_use();
  const std::size_t piece = data[1] == 0 ? size : data[1];
  std::string held = kv::test::dump(served.store(), false);
  std::size_t requests = 0;
  for (std::size_t at = kBytesAt; at < size && served.is_open() && requests < kRequestsMax;
       at += piece) {
    const std::string_view sent(reinterpret_cast<const char*>(data) + at,
                                std::min(piece, size - at));
    std::size_t replied = 0;
    served.turn(sent, [&] {
      check_buffers(served.client());
      require(memory_in_use() <= before + kMemoryMax + held.size(), "the memory in use is bounded");
      ++requests;
      const std::string& round = served.client().round;
      if (round.size() < replied) replied = 0;  // another round
      const bool refused = round.size() > replied && round[replied] == '-';
      replied = round.size();
      std::string now = kv::test::dump(served.store(), false);
      require(!refused || now == held, "what is refused has changed nothing");
      held = std::move(now);
    });
    require(!served.has_failed(), "nothing that a client sends ends the server");
  }
  served.require_password("");
  served.connect();
  served.turn("FLUSHALL\r\n");
  require(served.turn("DBSIZE\r\n") == ":0\r\n", "the next client is served");
  return 0;
}
