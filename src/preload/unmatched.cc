#include "preload/unmatched.h"

#include <array>
#include <atomic>
#include <climits>
#include <cstdio>

#include "preload/messages.h"

namespace pawl::preload {
namespace {

std::atomic<bool> has_matched{false};
std::atomic<bool> has_unmatched{false};
std::atomic<bool> is_written{false};
std::array<char, PATH_MAX> first;  // written once, before is_written

}  // namespace

void note_unmatched(const std::string& real_path) {
  if (has_matched.load(std::memory_order_relaxed) || has_unmatched.exchange(true)) return;
  first[real_path.copy(first.data(), first.size() - 1)] = '\0';
  is_written.store(true);
}

void note_matched() { has_matched.store(true, std::memory_order_relaxed); }

void say_if_nothing_matched() {
  if (has_matched.load() || !is_written.exchange(false)) return;
  // Not from the heap: the process may be at its very end.
  std::array<char, PATH_MAX + 128> text{};
  std::snprintf(text.data(), text.size(),
                "no file that this program mapped matches a glob (%s was the first that does not): "
                "pawl run protected nothing of it",
                first.data());
  say("exit", text.data());
}

}  // namespace pawl::preload
