#include "fase/crash/memory_states.h"

#include <algorithm>
#include <cstring>

namespace pawl::test {

void MemoryStates::put(std::vector<std::byte>& into, const Store& store) {
  std::memcpy(into.data() + store.offset, &store.value, kWordBytes);
}

bool MemoryStates::advance() {
  if (moment_ == trace_.events.size()) return false;
  const MemoryEvent& event = trace_.events[moment_++];
  using Kind = MemoryEvent::Kind;
  const std::uint64_t line = event.offset / kLineOfWords;
  switch (event.kind) {
    case Kind::program_word:
    case Kind::log_word:
      pending_[line].push_back({event.offset, event.value, event.kind == Kind::log_word, {}});
      put(now_, pending_[line].back());
      break;
    case Kind::write_back:
      if (const auto found = pending_.find(line); found != pending_.end()) {
        for (Store& store : found->second) store.written_back_by.push_back(event.thread);
      }
      break;
    case Kind::fence:
      // A line is written back as it is: what was stored before something durable is so, too.
      for (auto at = pending_.begin(); at != pending_.end();) {
        Line& stores = at->second;
        const auto last = std::find_if(stores.rbegin(), stores.rend(), [&](const Store& store) {
          return std::ranges::count(store.written_back_by, event.thread) != 0;
        });
        for (auto store = stores.begin(); store != last.base(); ++store) put(durable_, *store);
        stores.erase(stores.begin(), last.base());
        at = stores.empty() ? pending_.erase(at) : std::next(at);
      }
      break;
    case Kind::begins:
    case Kind::acknowledged:
      break;
  }
  return true;
}

std::vector<MemoryStates::Choice> MemoryStates::choices() const {
  std::vector<Choice> all;
  for (const auto& [line, stores] : pending_) {
    Choice log;
    std::map<std::uint64_t, Choice> words;
    for (const Store& store : stores)
      (store.is_log ? log : words[store.offset]).stores.push_back(&store);
    if (!log.stores.empty()) all.push_back(std::move(log));
    for (auto& [offset, word] : words) all.push_back(std::move(word));
  }
  return all;
}

std::uint64_t MemoryStates::count(std::uint64_t bound) const {
  std::uint64_t states = 1;
  for (const Choice& choice : choices()) {
    states *= choice.stores.size() + 1;
    if (states > bound) return states;
  }
  return states;
}

std::vector<std::byte> MemoryStates::state(std::uint64_t number) const {
  std::vector<std::byte> image = durable_;
  for (const Choice& choice : choices()) {
    const std::uint64_t kept = number % (choice.stores.size() + 1);
    number /= choice.stores.size() + 1;
    for (std::uint64_t i = 0; i < kept; ++i) put(image, *choice.stores[i]);
  }
  return image;
}

std::vector<std::byte> MemoryStates::state(Random& random) const {
  std::vector<std::byte> image = durable_;
  const std::uint64_t of_eight = below(random, 9);  // so many of eight choices are kept whole
  for (const Choice& choice : choices()) {
    std::uint64_t kept = 0;
    if (below(random, 4) == 0)
      kept = below(random, choice.stores.size() + 1);
    else if (below(random, 8) < of_eight)
      kept = choice.stores.size();
    for (std::uint64_t i = 0; i < kept; ++i) put(image, *choice.stores[i]);
  }
  return image;
}

}  // namespace pawl::test
