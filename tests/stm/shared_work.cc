#include "stm/shared_work.h"

#include <cstdlib>
#include <cstring>

namespace pawl::test {
namespace {

constexpr std::uint64_t kLists = 16;
constexpr std::size_t kBlockWords = 40;  // 320 bytes

struct Node {
  Node* next;
  std::uint64_t key;
};
struct Shared {
  std::uint64_t counter;
  std::uint8_t byte;
  std::uint16_t half;
  std::uint32_t word;
  float single_sum;
  double sum;
  std::uint64_t pair[2 * 64];
  std::uint64_t block[kBlockWords];
  std::uint64_t copy[kBlockWords];
  Node* lists[kLists];
  std::uint64_t freed_sum;
  std::uint64_t cancelled;
};
Shared shared;
std::uint64_t torn;

// Called through pointers, of which the compiler knows nothing.
__attribute__((transaction_safe, noinline)) void add_one(std::uint64_t* at) { *at += 1; }
__attribute__((transaction_safe, noinline)) void add_two(std::uint64_t* at) { *at += 2; }
using Add = void (*)(std::uint64_t*) transaction_safe;
Add volatile adders[] = {add_one, add_two};

void add(std::uint64_t drawn) {
  const Add adder = adders[drawn & 1];
  __transaction_atomic {
    adder(&shared.counter);
    // An inner one.
    __transaction_atomic { shared.counter += 3; }
  }
}

void add_small(std::uint64_t drawn) {
  __transaction_atomic {
    shared.byte = static_cast<std::uint8_t>(shared.byte + drawn);
    shared.half = static_cast<std::uint16_t>(shared.half + drawn);
    shared.word += static_cast<std::uint32_t>(drawn);
    shared.sum += 1.0;
    shared.single_sum += 0.5f;
  }
}

// Both of a pair are equal, for whom they are not half changed.
void keep_pair(std::uint64_t drawn) {
  std::uint64_t* const pair = shared.pair + drawn % 32;
  bool is_equal = true;
  __transaction_atomic {
    is_equal = pair[0] == pair[64];
    pair[0] += drawn;
    pair[64] += drawn;
  }
  if (!is_equal) __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
}

// Every word of the block grows by one, by way of a copy of it.
void copy_block() {
  __transaction_atomic {
    std::memcpy(shared.copy, shared.block, sizeof shared.block);
    for (std::uint64_t& word : shared.copy) word += 1;
    std::memmove(shared.copy + 1, shared.copy, sizeof shared.copy - sizeof shared.copy[0]);
    std::memcpy(shared.block, shared.copy, sizeof shared.block);
    std::memset(shared.copy, 0, sizeof shared.copy);
  }
}

void put(std::uint64_t key) {
  __transaction_atomic {
    Node* const node = static_cast<Node*>(std::malloc(sizeof(Node)));
    node->key = key;
    node->next = shared.lists[key % kLists];
    shared.lists[key % kLists] = node;
  }
}

void take(std::uint64_t key) {
  __transaction_atomic {
    Node* const node = shared.lists[key % kLists];
    if (node != nullptr) {
      shared.lists[key % kLists] = node->next;
      shared.freed_sum += node->key + 1;
      std::free(node);
    }
  }
}

void change_and_cancel(std::uint64_t drawn) {
  __transaction_atomic {
    shared.cancelled += drawn | 1;
    __transaction_cancel;
  }
}

}  // namespace

void work(std::uint64_t seed, std::uint64_t turns, bool cancels) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    add(state >> 20);
    add_small(state >> 30);
    keep_pair(state >> 40);
    if (turn % 8 == 0) copy_block();
    put(state >> 50);
    take(state >> 45);
    if (cancels) change_and_cancel(state);
  }
}

Outcome outcome() {
  Outcome found{};
  found.counter = shared.counter;
  found.small_sums =
      shared.byte + (std::uint64_t{shared.half} << 8) + (std::uint64_t{shared.word} << 24);
  found.doubles = static_cast<std::uint64_t>(shared.sum + shared.single_sum);
  for (const std::uint64_t word : shared.block) found.block_sum += word;
  for (const Node* node : shared.lists) {
    for (; node != nullptr; node = node->next) found.list_sum += node->key + 1;
  }
  // Which were taken depends on the order; what was put, not.
  found.list_sum += shared.freed_sum;
  found.torn = torn;
  found.cancelled = shared.cancelled;
  return found;
}

}  // namespace pawl::test
