// The data set, as commands see it: bounds are kept, keys that expired are gone, and full memory is
// an error of the request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "commands.h"
#include "string_table.h"

namespace kv {

// What was cleared is freed by so many pieces: with each request that writes, in each sweep, and
// when there is no memory left, before it is tried again.
constexpr int kTidyWithRequest = 4;
constexpr int kTidyInSweep = 20'000;
constexpr int kTidyWhenFull = 100'000;
// Buckets that a sweep looks at for keys that expired; it goes on with as many, for kSweepMsMax at
// most, while that finds more than this part of them.  When there is no memory left, and it finds
// none in so many, a request is refused.
constexpr uint64_t kSweepBuckets = 4096;
constexpr uint64_t kSweepGoesOnAt = 8;
constexpr uint64_t kSweepBucketsWhenFull = 65'536;

class Store {
 public:
  Store(pawl_fase* file, strings* data) : file_(file), data_(data) {}

  // Null when there is no such key.  A key that expired is removed.
  entry* find(std::string_view key, int64_t now_ms);
  static std::string_view value_of(const entry* found);
  static std::string_view key_of(const entry* found);

  // All three throw RequestError before anything was changed.  The expiry may be
  // STRINGS_KEEP_EXPIRY.
  void set(std::string_view key, std::string_view value, int64_t expires_ms, int64_t now_ms);
  void set_all(std::span<const std::string_view> keys_and_values, int64_t now_ms);
  void append(entry* found, std::string_view value, int64_t now_ms);

  // How many of the keys were there.
  uint64_t remove(std::span<const std::string_view> keys, int64_t now_ms);
  // A time that has passed removes it, be it the instant 0, which an entry has for never.
  void expire(entry* found, int64_t expires_ms, int64_t now_ms);
  void persist(entry* found);
  void clear(int64_t now_ms);

  // Frees some of what was cleared, and removes some keys that expired.
  void sweep();

  uint64_t size() const { return strings_keys(data_); }
  uint64_t expiring() const { return strings_expiring(data_); }
  // Calls visit(const entry*) for each, also for those that expired.
  template <class Visit>
  void visit_all(Visit visit) const {
    for (uint64_t bucket = 0; bucket < strings_buckets(data_); ++bucket) {
      for (const entry* at = strings_first(data_, bucket); at != nullptr; at = entry_next(at)) {
        visit(at);
      }
    }
  }

  pawl_fase* file() const { return file_; }

 private:
  bool tidy(int pieces);
  // Removes the keys of the next buckets that expired; how many.
  uint64_t sweep_buckets(uint64_t buckets, int64_t now_ms);
  // Tries until there is memory, or nothing more can be freed.
  template <class Try>
  void with_memory(int64_t now_ms, Try try_it);

  pawl_fase* file_;
  strings* data_;
  uint64_t sweep_from_ = 0;  // a bucket
};

// Whether the entry counts.
bool is_live(const entry* found, int64_t now_ms);

}  // namespace kv
