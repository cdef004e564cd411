#include "store.h"

#include <algorithm>

namespace kv {
namespace {

// Added to -0 it gives 0, as which Redis keeps it.
constexpr double kNoNegativeZero = 0;

}  // namespace

void SortedSet::add(std::string_view member, double score) {
  const auto element = scores.emplace(member, score + kNoNegativeZero).first;
  order.insert(&*element);
}

void SortedSet::change(Scores::iterator element, double score) {
  auto node = order.extract(&*element);
  element->second = score + kNoNegativeZero;
  order.insert(std::move(node));
}

void SortedSet::remove(Scores::iterator element) {
  order.erase(&*element);
  scores.erase(element);
}

std::string_view type_name(const Value& value) {
  constexpr std::string_view kNames[] = {"string", "list", "hash", "set", "zset"};
  return kNames[value.index()];
}

void assign(String& string, std::string_view text) {
  if (string.size() == text.size()) {
    std::copy(text.begin(), text.end(), string.begin());
  } else {
    string.assign(text);
  }
}

Store::Node* Store::find(std::string_view key, int64_t now_ms) {
  Keys& keys = shard_of(key);
  const auto found = keys.find(key);
  if (found == keys.end()) return nullptr;
  const int64_t expires_ms = found->second.expires_ms;
  if (expires_ms == 0 || expires_ms > now_ms) return &*found;
  erase(*found);
  return nullptr;
}

Store::Node& Store::insert(std::string_view key) {
  return *shard_of(key)
              .emplace(std::piecewise_construct, std::forward_as_tuple(key), std::tuple<>())
              .first;
}

void Store::erase(const Node& node) {
  if (node.second.expires_ms != 0) expiries_.erase({node.second.expires_ms, &node.first});
  Keys& keys = shard_of(node.first);
  keys.erase(keys.find(node.first));
}

void Store::clear() {
  expiries_.clear();
  for (Keys& keys : shards_) {
    if (keys.bucket_count() <= 1) continue;  // never used
    keys.clear();
    shrink(keys);
  }
}

void Store::set_expiry(Node& node, int64_t expires_ms) {
  Entry& entry = node.second;
  if (entry.expires_ms == expires_ms) return;
  if (entry.expires_ms != 0) expiries_.erase({entry.expires_ms, &node.first});
  if (expires_ms != 0) expiries_.insert({expires_ms, &node.first});
  entry.expires_ms = expires_ms;
}

size_t Store::sweep(int64_t now_ms, size_t keys_max) {
  size_t erased = 0;
  while (erased < keys_max && !expiries_.empty() && expiries_.begin()->at_ms <= now_ms) {
    find(*expiries_.begin()->key, now_ms);
    ++erased;
  }
  return erased;
}

size_t Store::size() const {
  size_t total = 0;
  for (const Keys& keys : shards_) total += keys.size();
  return total;
}

}  // namespace kv
