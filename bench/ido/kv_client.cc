// Drives a server of Redis's protocol as `redis-cli --lru-test` does, with requests that were made
// beforehand, so that the client costs little.  Stores all keys first, then measures.  Prints one
// line of JSON.
//
//   bench_ido_kv_client SOCKET KEYS SECONDS SEED
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "ido/kv_load.h"

namespace {

using namespace pawl::bench;

constexpr std::uint64_t kBatchesMade = 200;
constexpr std::uint64_t kKeysAtOnce = 1000;

void append_bulk(std::string& request, const std::string& word) {
  request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
}

void append_set(std::string& request, const std::string& key, const std::string& value) {
  request += "*3\r\n$3\r\nSET\r\n";
  append_bulk(request, key);
  append_bulk(request, value);
}

void append_get(std::string& request, const std::string& key) {
  request += "*2\r\n$3\r\nGET\r\n";
  append_bulk(request, key);
}

class Connection {
 public:
  explicit Connection(const char* path) : descriptor_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (descriptor_ < 0 ||
        connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error(std::string(path) + ": " + std::strerror(errno));
    }
  }
  ~Connection() { close(descriptor_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends the requests, and waits for so many replies: lines, or bulks of one line.
  void exchange(const std::string& requests, unsigned replies) {
    for (size_t sent = 0; sent < requests.size();) {
      const ssize_t took = write(descriptor_, requests.data() + sent, requests.size() - sent);
      if (took <= 0) throw std::runtime_error("the server is gone");
      sent += static_cast<size_t>(took);
    }
    while (replies > 0) {
      const ssize_t got = read(descriptor_, buffer_, sizeof buffer_);
      if (got <= 0) throw std::runtime_error("the server is gone");
      for (ssize_t at = 0; at < got; ++at) {
        const char c = buffer_[at];
        if (at_line_start_) {
          if (c == '-') throw std::runtime_error("the server answers with an error");
          is_length_ = c == '$';
          at_line_start_ = false;
          is_null_ = false;
        } else if (is_length_ && c == '-') {
          is_null_ = true;
        }
        if (c != '\n') continue;
        at_line_start_ = !is_length_ || is_null_;
        if (at_line_start_) --replies;
        is_length_ = false;
      }
    }
  }

 private:
  int descriptor_;
  bool at_line_start_ = true;
  bool is_length_ = false;
  bool is_null_ = false;
  char buffer_[1 << 16];
};

void store_all(Connection& connection, std::uint64_t keys, KvRandom& random) {
  for (std::uint64_t from = 1; from <= keys; from += kKeysAtOnce) {
    std::string requests;
    unsigned count = 0;
    for (std::uint64_t n = from; n <= keys && n < from + kKeysAtOnce; ++n, ++count) {
      append_set(requests, key_text(n), draw_value(random));
    }
    connection.exchange(requests, count);
  }
}

int run(const char* path, std::uint64_t keys, double seconds, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  Connection connection(path);
  KvRandom random(seed);
  store_all(connection, keys, random);
  std::vector<std::string> batches;
  for (std::uint64_t n = 0; n < 2 * kBatchesMade; ++n) {
    std::string& batch = batches.emplace_back();
    for (unsigned i = 0; i < kBatch; ++i) {
      const std::string key = key_text(draw_key(random, keys));
      if (n % 2 == 0) {
        append_set(batch, key, draw_value(random));
      } else {
        append_get(batch, key);
      }
    }
  }
  for (const std::string& batch : batches) connection.exchange(batch, kBatch);
  std::uint64_t operations = 0;
  const auto started = Clock::now();
  double took = 0;
  while (took < seconds) {
    for (unsigned half = 0; half < 2; ++half) {
      connection.exchange(batches[(operations / kBatch) % batches.size()], kBatch);
      operations += kBatch;
    }
    took = std::chrono::duration<double>(Clock::now() - started).count();
  }
  std::printf("{\"operations\": %llu, \"seconds\": %.6f}\n",
              static_cast<unsigned long long>(operations), took);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s SOCKET KEYS SECONDS SEED\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1], std::strtoull(argv[2], nullptr, 10), std::atof(argv[3]),
               std::strtoull(argv[4], nullptr, 10));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
    return 1;
  }
}
