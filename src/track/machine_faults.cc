#include "track/machine_faults.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <new>
#include <string_view>

#include "medium/descriptor.h"

namespace pawl::machine_faults {
namespace {

constexpr const char* kPath = "/proc/vmstat";
constexpr std::string_view kKey = "\npgfault ";
constexpr std::size_t kLineBytesMax = 64;

struct Prepared {
  std::mutex mutex;  // only ever tried: who prepares has the lowest priority
  Descriptor file;
  bool is_wanted = false;
  bool is_ready = false;
  Text text;
};

// Never destroyed: the polling thread lives to the very end.
Prepared& prepared() {
  static Prepared* const made = [] {
    auto* const fresh = new Prepared;
    static Prepared* in_child = fresh;
    // The descriptor's position would be the parent's, and another thread may hold the mutex.
    ::pthread_atfork(nullptr, nullptr, [] {
      in_child->file.reset(-1);
      new (in_child) Prepared;
    });
    return fresh;
  }();
  return *made;
}

std::optional<std::int64_t> number_behind(std::string_view line) {
  const std::size_t end = line.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const std::string_view digits = line.substr(0, end);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc{}) return std::nullopt;
  return number;
}

// Where the line begins, less one; the text is what `file` says now, as far as it is needed.
std::optional<std::size_t> find_line(int file, Text& text, std::string_view& read) {
  static std::atomic<std::size_t> enough_bytes{text.size()};
  for (const std::size_t bytes : {enough_bytes.load(std::memory_order_relaxed), text.size()}) {
    const ssize_t count = ::pread(file, text.data(), bytes, 0);
    read = {text.data(), count < 0 ? 0 : static_cast<std::size_t>(count)};
    const std::size_t key = read.find(kKey);
    if (key == std::string_view::npos || read.find('\n', key + 1) == std::string_view::npos)
      continue;
    enough_bytes.store(std::min(key + kLineBytesMax, text.size()), std::memory_order_relaxed);
    return key;
  }
  return std::nullopt;
}

// The line is of this moment if the read begins with it: what was formatted before and not taken is
// dropped by lseek(), and begins within a line where the numbers before it have other lengths now.
std::optional<std::int64_t> count_prepared(Prepared& own) {
  own.is_wanted = true;
  if (!own.is_ready) return std::nullopt;
  own.is_ready = false;
  std::array<char, kLineBytesMax> line;
  if (!own.file.is_open()) return std::nullopt;
  const ssize_t count = ::read(own.file.get(), line.data(), line.size());
  const std::string_view text(line.data(), count < 0 ? 0 : static_cast<std::size_t>(count));
  const std::string_view key = kKey.substr(1);
  if (!text.starts_with(key)) return std::nullopt;
  return number_behind(text.substr(key.size()));
}

std::optional<std::int64_t> count_with(int file, Text& text) {
  std::string_view read;
  const std::optional<std::size_t> line = find_line(file, text, read);
  if (!line.has_value()) return std::nullopt;
  return number_behind(read.substr(*line + kKey.size()));
}

void open_if_closed(Prepared& own) {
  if (!own.file.is_open()) own.file = Descriptor(::open(kPath, O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::optional<std::int64_t> count(Text& text) {
  Prepared& own = prepared();
  if (const std::unique_lock lock(own.mutex, std::try_to_lock); lock.owns_lock()) {
    if (const std::optional<std::int64_t> counted = count_prepared(own)) return counted;
    open_if_closed(own);
    return count_with(own.file.get(), text);
  }
  const Descriptor file(::open(kPath, O_RDONLY | O_CLOEXEC));
  return count_with(file.get(), text);
}

void prepare() noexcept {
  Prepared& own = prepared();
  const std::unique_lock lock(own.mutex, std::try_to_lock);
  if (!lock.owns_lock() || !own.is_wanted || own.is_ready) return;
  own.is_wanted = false;
  open_if_closed(own);
  std::string_view read;
  const std::optional<std::size_t> line = find_line(own.file.get(), own.text, read);
  own.is_ready =
      line.has_value() && ::lseek(own.file.get(), static_cast<off_t>(*line + 1), SEEK_SET) != -1;
}

bool is_prepared() {
  const std::lock_guard lock(prepared().mutex);
  return prepared().is_ready;
}

void close() {
  Prepared& own = prepared();
  const std::unique_lock lock(own.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  own.is_ready = own.is_wanted = false;
  own.file.reset(-1);
}

}  // namespace pawl::machine_faults
