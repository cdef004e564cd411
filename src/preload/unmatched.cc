#include "preload/unmatched.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>

#include "preload/messages.h"

namespace pawl::preload {
namespace {

struct UnmatchedFile {
  std::atomic<std::uint64_t> hash{0};  // of its path; 0: free
  std::atomic<bool> is_written{false};
  std::uint64_t shape = 0;
  std::array<char, PATH_MAX> path{};
};

std::atomic<bool> has_matched{false};
std::atomic<bool> has_said{false};
std::array<std::atomic<std::uint64_t>, kMatchedShapesMax> matched_shapes;
std::array<UnmatchedFile, kUnmatchedFilesMax> unmatched;

// FNV-1a.  Of the shape: with one letter for each number in the file's name.
std::uint64_t hash_of(const std::string& path, bool is_shape) {
  const std::size_t name = path.rfind('/') + 1;
  std::uint64_t hash = 0xcbf29ce484222325;
  bool was_digit = false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool is_digit = is_shape && i >= name && path[i] >= '0' && path[i] <= '9';
    if (is_digit && was_digit) continue;
    was_digit = is_digit;
    hash = (hash ^ static_cast<unsigned char>(is_digit ? '0' : path[i])) * 0x100000001b3;
  }
  return std::max<std::uint64_t>(hash, 1);
}

bool is_like_a_matched_one(const UnmatchedFile& file) {
  return std::ranges::any_of(matched_shapes,
                             [&](const auto& shape) { return shape.load() == file.shape; });
}

// Not from the heap: the process may be at its very end.
using Text = std::array<char, PATH_MAX + kMessageBytesMax>;

void say_nothing_matched() {
  if (!unmatched[0].is_written.load()) return;
  Text text{};
  std::snprintf(text.data(), text.size(),
                "no file that this program mapped matches a glob (%s was the first that does not): "
                "pawl run protected nothing of it",
                unmatched[0].path.data());
  say("exit", text.data());
}

void say_what_is_like_a_matched_one() {
  std::array<char, PATH_MAX> names{};
  std::size_t length = 0;
  std::size_t count = 0;
  for (const UnmatchedFile& file : unmatched) {
    if (!file.is_written.load() || !is_like_a_matched_one(file)) continue;
    if (++count > kUnmatchedNamesMax) continue;
    const int written = std::snprintf(names.data() + length, names.size() - length, "%s%s",
                                      count == 1 ? "" : ", ", file.path.data());
    length = std::min(names.size() - 1, length + static_cast<std::size_t>(written));
  }
  if (count == 0) return;
  Text text{};
  std::snprintf(text.data(), text.size(),
                "mapped without protection, while a glob matches files of the same directory whose "
                "names differ in numbers only (write * for the numbers): %s%s",
                names.data(), count > kUnmatchedNamesMax ? " and more" : "");
  say("exit", text.data());
}

}  // namespace

void note_unmatched(const std::string& real_path) {
  const std::uint64_t hash = hash_of(real_path, false);
  for (UnmatchedFile& file : unmatched) {
    std::uint64_t present = 0;
    if (file.hash.compare_exchange_strong(present, hash)) {
      file.shape = hash_of(real_path, true);
      file.path[real_path.copy(file.path.data(), file.path.size() - 1)] = '\0';
      file.is_written.store(true);
      return;
    }
    if (present == hash) return;
  }
}

void note_matched(const std::string& real_path) {
  has_matched.store(true, std::memory_order_relaxed);
  const std::uint64_t shape = hash_of(real_path, true);
  for (auto& known : matched_shapes) {
    std::uint64_t present = 0;
    if (known.compare_exchange_strong(present, shape) || present == shape) return;
  }
}

void say_what_was_unmatched() {
  if (has_said.exchange(true)) return;
  if (has_matched.load()) {
    say_what_is_like_a_matched_one();
  } else {
    say_nothing_matched();
  }
}

}  // namespace pawl::preload
