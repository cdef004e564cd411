#include "preload/unmatched.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <new>

#include "preload/messages.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

struct UnmatchedFile {
  std::atomic<std::uint64_t> hash{0};  // of its path; 0: free
  std::atomic<bool> is_written{false};
  std::atomic<bool> is_said{false};
  std::uint64_t shape = 0;
  std::array<char, PATH_MAX> path{};
};

std::atomic<bool> has_matched{false};
// The same of the children that a process forked since it first mapped a file that no glob matches:
// in memory that they share.
std::atomic<std::atomic<bool>*> has_matched_in_family{nullptr};
std::atomic<bool> has_said{false};  // at the end
std::atomic<std::size_t> said_count{0};
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

void share_with_children() {
  if (has_matched_in_family.load() != nullptr) return;
  void* const page = real().mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;  // then each process speaks for itself
  std::atomic<bool>* nobody = nullptr;
  if (!has_matched_in_family.compare_exchange_strong(nobody, new (page) std::atomic<bool>(false)))
    real().munmap(page, sizeof(std::atomic<bool>));
}

bool has_matched_anywhere() {
  const std::atomic<bool>* const in_family = has_matched_in_family.load();
  return has_matched.load() || (in_family != nullptr && in_family->load());
}

bool is_like_a_matched_one(std::uint64_t shape) {
  return std::ranges::any_of(matched_shapes,
                             [&](const auto& matched) { return matched.load() == shape; });
}

void say_like_a_matched_one(const std::string& real_path) {
  const std::size_t count = said_count.fetch_add(1);
  if (count >= kUnmatchedNamesMax) return;
  say("mmap", real_path +
                  " is mapped without protection, while a glob matches a file of the same "
                  "directory whose name differs in numbers only (write * for the numbers)" +
                  (count + 1 == kUnmatchedNamesMax ? "; no more such files are named" : ""));
}

void say_where_both_are_mapped(UnmatchedFile& file) {
  if (file.is_written.load() && is_like_a_matched_one(file.shape) && !file.is_said.exchange(true))
    say_like_a_matched_one(file.path.data());
}

}  // namespace

void note_unmatched(const std::string& real_path) {
  share_with_children();
  const std::uint64_t hash = hash_of(real_path, false);
  const std::uint64_t shape = hash_of(real_path, true);
  for (UnmatchedFile& file : unmatched) {
    std::uint64_t present = 0;
    if (file.hash.compare_exchange_strong(present, hash)) {
      file.shape = shape;
      file.path[real_path.copy(file.path.data(), file.path.size() - 1)] = '\0';
      file.is_written.store(true);
      say_where_both_are_mapped(file);
      return;
    }
    if (present == hash) return;
  }
  // No room to remember that it was said.
  if (is_like_a_matched_one(shape)) say_like_a_matched_one(real_path);
}

void note_matched(const std::string& real_path) {
  has_matched.store(true, std::memory_order_relaxed);
  if (std::atomic<bool>* const in_family = has_matched_in_family.load()) in_family->store(true);
  const std::uint64_t shape = hash_of(real_path, true);
  for (auto& known : matched_shapes) {
    std::uint64_t present = 0;
    if (known.compare_exchange_strong(present, shape)) break;
    if (present == shape) return;
  }
  for (UnmatchedFile& file : unmatched) say_where_both_are_mapped(file);
}

void say_nothing_was_matched() {
  if (has_said.exchange(true) || has_matched_anywhere() || !unmatched[0].is_written.load()) return;
  // Not from the heap: the process may be at its very end.
  std::array<char, PATH_MAX + kMessageBytesMax> text{};
  std::snprintf(text.data(), text.size(),
                "no file that this process mapped matches a glob (%s was the first that does not): "
                "pawl run protected nothing of it",
                unmatched[0].path.data());
  say("exit", text.data());
}

}  // namespace pawl::preload
