// Any bytes as what clients send to examples/cache: it answers within its bounds, and never reads
// or writes outside of what there is.
//
// The input: a byte of how large the pieces are in which the rest arrives.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_in_use.h"
#include "fuzz/require.h"

extern "C" {
#include "cache/protocol.h"
}

namespace pawl::fuzz {
namespace {

constexpr std::size_t kBytesAt = 1;
constexpr std::size_t kItemBytesMax = std::size_t{4} << 20;
// Answers up to the pause with a value more, doubled, and what is handed over.
constexpr std::size_t kMemoryMax = 4 * (OUTPUT_BYTES_PAUSE + VALUE_BYTES_MAX + LINE_BYTES_MAX);

Seed seed(const char* name, unsigned piece, const std::string& text) {
  Seed made{name, {static_cast<std::byte>(piece)}};
  for (const char c : text) made.bytes.push_back(static_cast<std::byte>(c));
  return made;
}

// The cache, for all inputs.  Its sections are not protected: only its parser and its items are of
// interest, compiled as any C is.
class OneCache {
 public:
  OneCache() {
    const char* directory = std::getenv("PAWL_TEST_DIR");
    if (directory == nullptr) {
      directory = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : ".";
    }
    path_ = std::string(directory) + "/pawl-fuzz-XXXXXX";
    require(mkdtemp(path_.data()) != nullptr, "a directory can be made");
    pawl_fase_options options{};
    pawl_fase_options_init(&options);
    options.unprotected = 1;
    file_ = pawl_fase_open((path_ + "/items.pawl").c_str(), &options);
    require(file_ != nullptr, "a file can be made");
    cache* const items = cache_open(file_, kItemBytesMax, STRIPES);
    require(items != nullptr, "a cache can be made");
    value_ = std::make_unique<char[]>(VALUE_BYTES_MAX);
    worker_ = {file_, items, cache_inbox(file_, items, 0), value_.get()};
    require(worker_.inbox != nullptr, "there is memory for an inbox");
  }
  OneCache(const OneCache&) = delete;
  OneCache& operator=(const OneCache&) = delete;
  ~OneCache() {
    pawl_fase_close(file_);
    std::filesystem::remove_all(path_);
  }

  // What is answered to all that is whole of the input, of which what was answered is taken away.
  verdict answer(std::string& input, std::size_t& get_at) {
    for (;;) {
      // Of its own, so that reading past it is noticed.
      const std::unique_ptr<char[]> sent = std::make_unique<char[]>(input.size());
      std::copy(input.begin(), input.end(), sent.get());
      output answered{};
      std::size_t taken = 0;
      const verdict outcome =
          protocol_answer(&worker_, &get_at, sent.get(), input.size(), &taken, &answered);
      const std::unique_ptr<char, decltype(&std::free)> bytes(answered.bytes, &std::free);
      require(!answered.has_failed, "there is memory");
      require(answered.count <= OUTPUT_BYTES_PAUSE + VALUE_BYTES_MAX + LINE_BYTES_MAX,
              "answers are bounded");
      require(outcome != PAUSE || answered.count >= OUTPUT_BYTES_PAUSE, "a pause has a reason");
      require(taken <= input.size(), "what was taken was there");
      input.erase(0, taken);
      if (outcome != PAUSE) return outcome;
    }
  }

 private:
  std::string path_;
  pawl_fase* file_ = nullptr;
  std::unique_ptr<char[]> value_;
  worker worker_{};
};

}  // namespace

const std::size_t kPrologueBytes = kBytesAt;

std::vector<Seed> seeds() {
  return {
      seed("store", 0,
           "set a 1 0 5\r\nhello\r\nget a b\r\nadd a 0 0 1\r\nx\r\nreplace a 4294967295 -1 "
           "1\r\ny\r\n"
           "gets a\r\ndelete a\r\nset b 0 100 0 noreply\r\n\r\nget b\r\n"),
      seed("numbers", 3,
           "set n 0 0 20\r\n18446744073709551615\r\nincr n 1\r\ndecr n 18446744073709551616\r\n"
           "incr n -1\r\nset n 0 0 1\r\nx\r\nincr n 1\r\n"),
      seed("others", 1,
           "flush_all 10\r\nflush_all -1 noreply\r\nstats\r\nversion\r\nverbosity "
           "1\r\nnosuch\r\nquit\r\n"),
      seed("bad", 0, "set a 0 0 99999999999999999999\r\n"),
      seed("bad_end", 0, "set a 0 0 1\r\nxyz\r\n"),
      seed("browser", 0, "GET / HTTP/1.1\r\nHost: localhost\r\n"),
      seed(
          "amplified", 0,
          "set a 0 0 200\r\n" + std::string(200, 'x') + "\r\nget" +
              [] {
                std::string keys;
                for (int n = 0; n < 200; ++n) keys += " a";
                return keys;
              }() +
              "\r\n"),
  };
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size < kBytesAt) return 0;
  static OneCache cache;
  const std::size_t before = memory_in_use();
  const std::size_t piece = data[0] == 0 ? size : data[0];
  std::string input;
  std::size_t get_at = 0;
  bool is_open = true;
  for (std::size_t at = kBytesAt; at < size && is_open; at += piece) {
    input.append(reinterpret_cast<const char*>(data) + at, std::min(piece, size - at));
    is_open = cache.answer(input, get_at) == GO_ON;
    require(memory_in_use() <= before + kMemoryMax + 2 * size, "the memory in use is bounded");
    require(!is_open || input.size() <= VALUE_BYTES_MAX + LINE_BYTES_MAX + 4,
            "what waits for its rest is bounded");
  }
  std::string clear = "flush_all\r\n";
  get_at = 0;
  require(cache.answer(clear, get_at) == GO_ON && clear.empty(), "the next client is served");
  return 0;
}
