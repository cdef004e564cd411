// The same load as kv_client's on the data set of examples/kv/sections itself, without a server:
// what the scheme costs.  Prints one line of JSON.
//
//   bench_ido_kv_local_SYSTEM FILE KEYS SECONDS SEED
#include <pawl/fase.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ido/kv_load.h"
#include "string_table.h"

namespace {

using namespace pawl::bench;

constexpr std::uint64_t kRequestsMade = 200'000;

struct Request {
  std::string key;
  std::string value;  // empty: a GET
};

pawl_fase* open_file(const char* path) {
  pawl_fase_options options{};
  if (pawl_fase_options_init(&options) != 0) return nullptr;
#ifdef KV_UNPROTECTED
  options.unprotected = 1;
#endif
  return pawl_fase_open(path, &options);
}

class DataSet {
 public:
  DataSet(pawl_fase* file, strings* data) : file_(file), data_(data) {}

  void serve(const Request& request) {
    const std::string& key = request.key;
    const std::string& value = request.value;
    const std::uint64_t hash = strings_hash(key.data(), key.size());
    entry** const place = strings_place(data_, hash, key.data(), key.size());
    if (value.empty()) {
      if (*place != nullptr) bytes_read_ = bytes_read_ + entry_value(*place).count;
      return;
    }
    if (strings_set(file_, data_, place, hash, key.data(), key.size(), value.data(), value.size(),
                    0)) {
      return strings_grow(file_, data_, 1);
    }
    std::fprintf(stderr, "no memory\n");
    std::_Exit(1);
  }

  pawl_fase_statistics count() const {
    pawl_fase_statistics statistics{};
    pawl_fase_stats(file_, &statistics);
    return statistics;
  }

 private:
  pawl_fase* file_;
  strings* data_;
  volatile std::uint64_t bytes_read_ = 0;  // so that reading is not left out
};

int run(const char* path, std::uint64_t keys, double seconds, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  pawl_fase* const file = open_file(path);
  strings* const data = file == nullptr ? nullptr : strings_open(file);
  if (data == nullptr) {
    std::fprintf(stderr, "%s: %s\n", path, pawl_last_error());
    return 1;
  }
  DataSet set(file, data);
  KvRandom random(seed);
  for (std::uint64_t n = 1; n <= keys; ++n) set.serve({key_text(n), draw_value(random)});
  std::vector<Request> requests;
  for (std::uint64_t n = 0; n < kRequestsMade; ++n) {
    const bool sets = n / kBatch % 2 == 0;
    requests.push_back({key_text(draw_key(random, keys)), sets ? draw_value(random) : ""});
  }
  for (const Request& request : requests) set.serve(request);
  const pawl_fase_statistics before = set.count();
  std::uint64_t operations = 0;
  const auto started = Clock::now();
  double took = 0;
  while (took < seconds) {
    for (unsigned n = 0; n < 2 * kBatch; ++n) set.serve(requests[operations++ % kRequestsMade]);
    took = std::chrono::duration<double>(Clock::now() - started).count();
  }
  const pawl_fase_statistics after = set.count();
  std::printf(
      "{\"operations\": %llu, \"seconds\": %.6f, \"fences\": %llu, \"lines\": %llu, "
      "\"bytes\": %llu}\n",
      static_cast<unsigned long long>(operations), took,
      static_cast<unsigned long long>(after.fences - before.fences),
      static_cast<unsigned long long>(after.lines_flushed - before.lines_flushed),
      static_cast<unsigned long long>(after.bytes_logged - before.bytes_logged));
  return pawl_fase_close(file) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s FILE KEYS SECONDS SEED\n", argv[0]);
    return 2;
  }
  return run(argv[1], std::strtoull(argv[2], nullptr, 10), std::atof(argv[3]),
             std::strtoull(argv[4], nullptr, 10));
}
