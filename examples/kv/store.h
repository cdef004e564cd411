// The data set: ordinary containers of the standard library, in the persistent heap.
//
// What a write costs is decided by the pages it stores to, so:
//   - a value of the length of the one before it is copied over it, and nothing else changes;
//   - what does not change is not stored: no counters, no times of use, no order of use;
//   - there are kShards tables of keys, not one, so that growing rehashes a small part of the keys.
//     A set is one table; one of a million members is rehashed at once when it doubles.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <exception>
#include <memory>
#include <pawl/heap.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "bounds.h"

namespace kv {

using String = pawl::string;
// All of them are searched by what a request holds, without making a String of it.
using List = pawl::deque<String>;
using Hash = pawl::map<String, String>;
using Set = pawl::unordered_set<String>;

// Members by name, and the same elements by score and name.
struct SortedSet {
  using Scores = pawl::map<String, double>;
  using Element = Scores::value_type;
  struct ByScore {
    using is_transparent = void;
    bool operator()(const Element* a, const Element* b) const {
      return a->second != b->second ? a->second < b->second : a->first < b->first;
    }
    bool operator()(const Element* element, double score) const { return element->second < score; }
    bool operator()(double score, const Element* element) const { return score < element->second; }
  };
  using Order = pawl::set<const Element*, ByScore>;

  void add(std::string_view member, double score);  // a new one
  void change(Scores::iterator element, double score);
  void remove(Scores::iterator element);

  Scores scores;
  Order order;
};

// An object of its own in the heap, so that the nodes of the table of keys stay small.
template <class T>
class Box {
 public:
  Box() : object_(pawl::allocator<T>().allocate(1)) { std::construct_at(object_); }
  ~Box() {
    std::destroy_at(object_);
    pawl::allocator<T>().deallocate(object_, 1);
  }
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  T& operator*() { return *object_; }
  const T& operator*() const { return *object_; }
  const T* operator->() const { return object_; }

 private:
  T* object_;
};

using Value = std::variant<String, Box<List>, Box<Hash>, Box<Set>, Box<SortedSet>>;

// The type's name, as Redis says it.
std::string_view type_name(const Value& value);

// Replaces a string's text, and changes no byte that needs no change.
void assign(String& string, std::string_view text);

// Gives back the buckets that a table does not need, where there is memory for those it does: what
// only removes is never refused for want of it.  A heap that is damaged refuses to commit.
template <class Table>
void shrink(Table& table) {
  try {
    table.rehash(0);
  } catch (const std::exception&) {
    return;
  }
}

struct Entry {
  Value value;
  int64_t expires_ms = 0;  // by the wall clock; 0: never
};

class Store {
 public:
  using Keys = pawl::unordered_map<String, Entry>;
  using Node = Keys::value_type;

  // Null when there is no such key.  A key that expired is erased.
  Node* find(std::string_view key, int64_t now_ms);
  // The key must not exist; its value is an empty string.
  Node& insert(std::string_view key);
  void erase(const Node& node);
  void clear();

  void set_expiry(Node& node, int64_t expires_ms);
  // Erases keys that expired, so many at most; returns how many.
  size_t sweep(int64_t now_ms, size_t keys_max);

  // Keys, with those that expired and were not met since.
  size_t size() const;
  size_t expiring() const { return expiries_.size(); }
  const Keys& shard(size_t number) const { return shards_[number]; }

 private:
  struct Expiry {
    int64_t at_ms;
    const String* key;
    auto operator<=>(const Expiry&) const = default;
  };

  Keys& shard_of(std::string_view key) { return shards_[pawl::hash<String>()(key) % kShards]; }

  std::array<Keys, kShards> shards_;
  pawl::set<Expiry> expiries_;
};

}  // namespace kv
