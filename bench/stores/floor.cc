// No store: the least that a durable operation costs here.  It keeps its data in memory, and puts
// as many bytes as an operation brings, in whole blocks, over a file that was written before.  Pawl
// keeps a processor awake while it waits; so does one of the two floors, with the same means.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <system_error>

#include "mapping/options.h"
#include "medium/idle_poll.h"
#include "stores/kinds.h"

namespace pawl::bench {
namespace {

constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;  // more than the largest batch brings
constexpr std::size_t kFileBytes = std::size_t{32} << 20;

class FloorStore final : public Store {
 public:
  FloorStore(const StoreSetup& setup, std::uint32_t idle_poll_us)
      : file_(::open((setup.directory + "/store").c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC,
                     0600)),
        buffer_(static_cast<char*>(std::aligned_alloc(kBlockBytes, kBufferBytes)), &std::free),
        idle_poll_us_(idle_poll_us) {
    expect(file_ >= 0);
    std::fill_n(buffer_.get(), kBufferBytes, 'f');
    for (; at_ < kFileBytes; at_ += kBufferBytes) write(kBufferBytes);
    expect(::fsync(file_) == 0);
  }
  ~FloorStore() override { ::close(file_); }

  void put(std::string_view key, std::string_view value) override {
    values_.insert_or_assign(std::string(key), std::string(value));
    done(key.size() + value.size());
  }
  void erase(std::string_view key) override {
    values_.erase(values_.find(key));
    done(key.size());
  }
  void begin_batch() override { in_batch_ = true; }
  void commit_batch() override {
    in_batch_ = false;
    done(0);
  }
  bool get(std::string_view key, std::string& value) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return false;
    value = found->second;
    return true;
  }

 private:
  static void expect(bool succeeded) {
    if (!succeeded) throw std::system_error(errno, std::generic_category(), "floor");
  }
  void done(std::size_t bytes) {
    bytes_ += bytes;
    if (in_batch_) return;
    const std::size_t whole = (bytes_ + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    bytes_ = 0;
    if (at_ + whole > kFileBytes) at_ = 0;
    {
      const IdlePoll::Wait wait(idle_poll_us_);
      write(whole);
      expect(::fdatasync(file_) == 0);
    }
    at_ += whole;
  }
  void write(std::size_t bytes) const {
    expect(bytes <= kBufferBytes &&
           ::pwrite(file_, buffer_.get(), bytes, static_cast<off_t>(at_)) ==
               static_cast<ssize_t>(bytes));
  }

  std::map<std::string, std::string, std::less<>> values_;
  const int file_;
  const std::unique_ptr<char, decltype(&std::free)> buffer_;
  const std::uint32_t idle_poll_us_;
  std::size_t at_ = 0;
  std::size_t bytes_ = 0;  // of the batch
  bool in_batch_ = false;
};

StoreKind floor_of(const std::string& name, const std::string& product,
                   std::uint32_t idle_poll_us) {
  return {.name = name,
          .product = product,
          .setting = "as many bytes, in blocks of 4 KiB, over written ones; no store, but a bound",
          .open =
              [idle_poll_us](const StoreSetup& setup) {
                return std::make_unique<FloorStore>(setup, idle_poll_us);
              },
          .role = Role::bound};
}

}  // namespace

StoreKind floor_kind() {
  return floor_of("floor", "one pwrite past the page cache and one fdatasync", 0);
}

StoreKind floor_awake_kind() {
  return floor_of("floor-awake", "as floor, with a processor kept awake meanwhile, as by Pawl",
                  kIdlePollDefaultUs);
}

}  // namespace pawl::bench
