#include "fase/crash/subjects.h"

#include <algorithm>
#include <stdexcept>

namespace pawl::test {
namespace {

constexpr std::uint64_t kNodesMax = 1 << 20;  // a longer chain goes round in a circle
constexpr std::uint64_t kBuckets = 4;

// Values of a chain of nodes that have `next` and `value`.
template <class Node>
Contents values_from(const Node* node) {
  Contents contents;
  for (; node != nullptr; node = node->next) {
    contents.push_back(node->value);
    if (contents.size() > kNodesMax) throw std::runtime_error("the chain has no end");
  }
  return contents;
}

// Keys and values in turn, the keys in rising order.
Contents pairs_of(const list& of) {
  Contents contents;
  for (const list_node* node = of.first.next; node != nullptr; node = node->next) {
    if (!contents.empty() && contents[contents.size() - 2] >= node->key)
      throw std::runtime_error("keys are not in order");
    contents.push_back(node->key);
    contents.push_back(node->value);
    if (contents.size() > kNodesMax) throw std::runtime_error("the list has no end");
  }
  return contents;
}

void model_pairs(Contents& contents, const Operation& operation) {
  std::size_t at = 0;
  while (at < contents.size() && contents[at] < operation.key) at += 2;
  const bool is_there = at < contents.size() && contents[at] == operation.key;
  const auto place = contents.begin() + static_cast<std::ptrdiff_t>(at);
  if (operation.kind == 0 && is_there) contents[at + 1] = operation.value;
  if (operation.kind == 0 && !is_there) contents.insert(place, {operation.key, operation.value});
  if (operation.kind == 1 && is_there) contents.erase(place, place + 2);
}

void sort_pairs(Contents& contents) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
  for (std::size_t i = 0; i < contents.size(); i += 2)
    pairs.emplace_back(contents[i], contents[i + 1]);
  std::ranges::sort(pairs);
  contents.clear();
  for (const auto& [key, value] : pairs) contents.insert(contents.end(), {key, value});
}

const Subject kStack{
    "stack",
    2,
    [](pawl_fase* file) -> void* { return stack_make(file); },
    [](pawl_fase* file, void* structure, const Operation& operation) -> std::uint64_t {
      auto* at = static_cast<stack*>(structure);
      std::uint64_t value = 0;
      if (operation.kind == 0) stack_push(file, at, operation.value);
      if (operation.kind == 1) stack_pop(file, at, &value);
      return value;
    },
    [](void* structure) { return values_from(static_cast<stack*>(structure)->head); },
    [](Contents& contents, const Operation& operation) {
      if (operation.kind == 0)
        contents.insert(contents.begin(), operation.value);
      else if (!contents.empty())
        contents.erase(contents.begin());
    }};

const Subject kQueue{
    "queue",
    2,
    [](pawl_fase* file) -> void* { return queue_make(file); },
    [](pawl_fase* file, void* structure, const Operation& operation) -> std::uint64_t {
      auto* at = static_cast<queue*>(structure);
      std::uint64_t value = 0;
      if (operation.kind == 0) queue_put(file, at, operation.value);
      if (operation.kind == 1) queue_take(file, at, &value);
      return value;
    },
    [](void* structure) {
      auto* at = static_cast<queue*>(structure);
      for (const queue_node* node = at->head; node != at->tail; node = node->next) {
        if (node == nullptr) throw std::runtime_error("the tail is not behind the head");
      }
      if (at->tail->next != nullptr) throw std::runtime_error("there is a node behind the tail");
      return values_from(at->head->next);
    },
    [](Contents& contents, const Operation& operation) {
      if (operation.kind == 0)
        contents.push_back(operation.value);
      else if (!contents.empty())
        contents.erase(contents.begin());
    }};

const Subject kList{
    "list",
    3,
    [](pawl_fase* file) -> void* { return list_make(file); },
    [](pawl_fase* file, void* structure, const Operation& operation) -> std::uint64_t {
      auto* at = static_cast<list*>(structure);
      std::uint64_t value = 0;
      if (operation.kind == 0) list_put(file, at, operation.key, operation.value);
      if (operation.kind == 1) list_remove(file, at, operation.key);
      if (operation.kind == 2) list_get(at, operation.key, &value);
      return 0;
    },
    [](void* structure) { return pairs_of(*static_cast<list*>(structure)); },
    model_pairs};

const Subject kMap{
    "map",
    3,
    [](pawl_fase* file) -> void* { return map_make(file, kBuckets); },
    [](pawl_fase* file, void* structure, const Operation& operation) -> std::uint64_t {
      auto* at = static_cast<map*>(structure);
      std::uint64_t value = 0;
      if (operation.kind == 0) map_put(file, at, operation.key, operation.value);
      if (operation.kind == 1) map_remove(file, at, operation.key);
      if (operation.kind == 2) map_get(at, operation.key, &value);
      return 0;
    },
    [](void* structure) {
      auto* at = static_cast<map*>(structure);
      Contents contents;
      for (std::uint64_t i = 0; i < at->bucket_count; ++i) {
        const Contents bucket = pairs_of(at->buckets[i]);
        contents.insert(contents.end(), bucket.begin(), bucket.end());
      }
      sort_pairs(contents);
      return contents;
    },
    model_pairs};

}  // namespace

std::vector<Subject> subjects(const std::string& name) {
  std::vector<Subject> found{kStack, kQueue, kList, kMap};
  if (!name.empty()) std::erase_if(found, [&](const Subject& one) { return name != one.name; });
  if (found.empty()) throw std::runtime_error("there is no structure " + name);
  return found;
}

}  // namespace pawl::test
