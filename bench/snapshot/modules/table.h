// A key-value store: a hash table whose buckets are vectors of keys and pointers to values.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "snapshot/structure.h"

namespace pawl::bench {

// Spreads keys over buckets: the finaliser of SplitMix64.  Every system's table uses it.
inline std::uint64_t hash_of_key(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

inline constexpr std::uint64_t kPairsOfBucket = 4;  // on average, when the table is full
inline constexpr std::uint64_t kFirstCapacity = 4;  // of a bucket

// `Pool` allocates, frees, and commits; see pools.h.
template <class Pool>
class Table {
 public:
  struct Value {
    char bytes[kPairValueBytes];
  };
  struct Entry {
    std::uint64_t key;
    Value* value;
  };
  struct Bucket {
    Entry* entries;
    std::uint64_t count;
    std::uint64_t capacity;
  };
  struct Root {
    Bucket* buckets;
    std::uint64_t bucket_count;
  };

  Table(Pool& pool, std::uint64_t pairs_max)
      : pool_(pool), root_(static_cast<Root*>(pool.allocate(sizeof(Root)))) {
    root_->bucket_count = pairs_max / kPairsOfBucket + 1;
    root_->buckets = static_cast<Bucket*>(pool.allocate(root_->bucket_count * sizeof(Bucket)));
    std::memset(root_->buckets, 0, root_->bucket_count * sizeof(Bucket));
  }

  void insert(std::uint64_t key, const char* bytes) {
    Bucket& bucket = bucket_of(key);
    if (find(bucket, key) != nullptr) throw std::runtime_error("the key is there already");
    if (bucket.count == bucket.capacity) grow(bucket);
    auto* const value = static_cast<Value*>(pool_.allocate(sizeof(Value)));
    std::memcpy(value->bytes, bytes, kPairValueBytes);
    bucket.entries[bucket.count] = {key, value};
    ++bucket.count;
  }
  void update(std::uint64_t key, const char* bytes) {
    std::memcpy(value_of(key).bytes, bytes, kPairValueBytes);
  }
  void read(std::uint64_t key, char* bytes) const {
    std::memcpy(bytes, value_of(key).bytes, kPairValueBytes);
  }
  // So many pairs, from the key's bucket on.  Returns how many there were.
  std::uint32_t scan(std::uint64_t key, std::uint32_t pairs, char* bytes) const {
    std::uint32_t done = 0;
    std::uint64_t at = index_of(key);
    for (std::uint64_t looked = 0; looked < root_->bucket_count; ++looked) {
      const Bucket& bucket = root_->buckets[at];
      for (std::uint64_t i = 0; i < bucket.count; ++i) {
        if (done == pairs) return done;
        std::memcpy(bytes + done * kPairValueBytes, bucket.entries[i].value->bytes,
                    kPairValueBytes);
        ++done;
      }
      if (++at == root_->bucket_count) at = 0;
    }
    return done;
  }

 private:
  std::uint64_t index_of(std::uint64_t key) const { return hash_of_key(key) % root_->bucket_count; }
  Bucket& bucket_of(std::uint64_t key) const { return root_->buckets[index_of(key)]; }
  static Value* find(const Bucket& bucket, std::uint64_t key) {
    for (std::uint64_t i = 0; i < bucket.count; ++i) {
      if (bucket.entries[i].key == key) return bucket.entries[i].value;
    }
    return nullptr;
  }
  Value& value_of(std::uint64_t key) const {
    Value* const value = find(bucket_of(key), key);
    if (value == nullptr) throw std::runtime_error("the key is not there");
    return *value;
  }
  void grow(Bucket& bucket) {
    const std::uint64_t capacity = bucket.capacity == 0 ? kFirstCapacity : 2 * bucket.capacity;
    auto* const entries = static_cast<Entry*>(pool_.allocate(capacity * sizeof(Entry)));
    for (std::uint64_t i = 0; i < bucket.count; ++i) entries[i] = bucket.entries[i];
    Entry* const old = bucket.entries;
    bucket.entries = entries;
    bucket.capacity = capacity;
    if (old != nullptr) pool_.release(old);
  }

  Pool& pool_;
  Root* root_;
};

}  // namespace pawl::bench
