#include "store.h"

#include <algorithm>
#include <string>

#include "bounds.h"
#include "service.h"

namespace kv {
namespace {

std::string_view view_of(bytes found) { return {found.at, found.count}; }

void check_key(std::string_view key) {
  if (key.size() <= STRINGS_KEY_BYTES_MAX) return;
  throw RequestError("ERR key exceeds the maximum size of " +
                     std::to_string(STRINGS_KEY_BYTES_MAX) + " bytes");
}

void check_value(size_t value_bytes) {
  if (value_bytes <= STRINGS_VALUE_BYTES_MAX) return;
  throw RequestError("ERR string exceeds maximum allowed size of " +
                     std::to_string(STRINGS_VALUE_BYTES_MAX) + " bytes");
}

}  // namespace

bool is_live(const entry* found, int64_t now_ms) {
  const int64_t expires_ms = entry_expires_ms(found);
  return expires_ms == 0 || expires_ms > now_ms;
}

entry* Store::find(std::string_view key, int64_t now_ms) {
  const uint64_t hash = strings_hash(key.data(), key.size());
  entry* const found = *strings_place(data_, hash, key.data(), key.size());
  if (found == nullptr || is_live(found, now_ms)) return found;
  strings_remove_entry(file_, data_, found);
  return nullptr;
}

std::string_view Store::value_of(const entry* found) { return view_of(entry_value(found)); }
std::string_view Store::key_of(const entry* found) { return view_of(entry_key(found)); }

bool Store::tidy(int pieces) {
  while (pieces > 0 && strings_tidy(file_, data_)) --pieces;
  return pieces == 0;
}

template <class Try>
void Store::with_memory(int64_t now_ms, Try try_it) {
  tidy(kTidyWithRequest);
  const auto free_some = [this, now_ms] {
    return tidy(kTidyWhenFull) || sweep_buckets(kSweepBucketsWhenFull, now_ms) > 0;
  };
  for (bool may_help = true; !try_it(); may_help = free_some()) {
    if (!may_help) {
      throw RequestError("OOM command not allowed when used memory > 'maxmemory'.");
    }
  }
}

void Store::set(std::string_view key, std::string_view value, int64_t expires_ms, int64_t now_ms) {
  check_key(key);
  check_value(value.size());
  const uint64_t hash = strings_hash(key.data(), key.size());
  with_memory(now_ms, [&] {
    entry** const place = strings_place(data_, hash, key.data(), key.size());
    return strings_set(file_, data_, place, hash, key.data(), key.size(), value.data(),
                       value.size(), expires_ms);
  });
  strings_grow(file_, data_, 1);
}

void Store::set_all(std::span<const std::string_view> keys_and_values, int64_t now_ms) {
  const size_t records = keys_and_values.size() / 2;
  size_t bytes_of_all = records * STRINGS_RECORD_BYTES;
  for (size_t at = 0; at < 2 * records; at += 2) {
    check_key(keys_and_values[at]);
    check_value(keys_and_values[at + 1].size());
    bytes_of_all += keys_and_values[at].size() + keys_and_values[at + 1].size();
  }
  if (records > STRINGS_RECORDS_MAX || bytes_of_all > STRINGS_INBOX_BYTES) {
    throw RequestError("ERR more than " + std::to_string(STRINGS_RECORDS_MAX) + " keys, or " +
                       std::to_string(STRINGS_INBOX_BYTES) + " bytes, at once");
  }
  size_t received = 0;
  for (size_t at = 2 * records; at > 0; at -= 2) {
    const std::string_view key = keys_and_values[at - 2];
    const std::string_view value = keys_and_values[at - 1];
    received = strings_receive(data_, received, strings_hash(key.data(), key.size()), key.data(),
                               key.size(), value.data(), value.size(), 0);
  }
  with_memory(now_ms, [this, records] { return strings_store(file_, data_, records); });
  strings_grow(file_, data_, records);
}

void Store::append(entry* found, std::string_view value, int64_t now_ms) {
  check_value(value_of(found).size() + value.size());
  strings_receive(data_, 0, 0, nullptr, 0, value.data(), value.size(), 0);
  with_memory(now_ms, [this, found] { return strings_append(file_, data_, found); });
}

uint64_t Store::remove(std::span<const std::string_view> keys, int64_t now_ms) {
  for (const std::string_view key : keys) {
    check_key(key);
    find(key, now_ms);
  }
  // What does not fit into one section takes several.
  uint64_t removed = 0;
  while (!keys.empty()) {
    size_t received = 0;
    size_t records = 0;
    while (records < std::min<size_t>(keys.size(), STRINGS_RECORDS_MAX) &&
           received + keys[records].size() + STRINGS_RECORD_BYTES <= STRINGS_INBOX_BYTES) {
      const std::string_view key = keys[records++];
      received = strings_receive(data_, received, strings_hash(key.data(), key.size()), key.data(),
                                 key.size(), nullptr, 0, 0);
    }
    removed += strings_remove(file_, data_, records);
    keys = keys.subspan(records);
  }
  return removed;
}

void Store::expire(entry* found, int64_t expires_ms, int64_t now_ms) {
  if (expires_ms <= now_ms) {
    strings_remove_entry(file_, data_, found);
  } else {
    strings_expire(data_, found, expires_ms);
  }
}

void Store::persist(entry* found) { strings_expire(data_, found, 0); }

void Store::clear(int64_t now_ms) {
  with_memory(now_ms, [this] { return strings_clear(file_, data_); });
}

void Store::sweep() {
  tidy(kTidyInSweep);
  const int64_t until_ms = wall_clock_ms() + kSweepMsMax;
  for (int64_t now_ms = 0; now_ms < until_ms;) {
    now_ms = wall_clock_ms();
    if (sweep_buckets(kSweepBuckets, now_ms) <= kSweepBuckets / kSweepGoesOnAt) break;
  }
}

uint64_t Store::sweep_buckets(uint64_t buckets, int64_t now_ms) {
  const uint64_t expiring_before = expiring();
  if (expiring_before == 0) return 0;
  for (uint64_t n = std::min(buckets, strings_buckets(data_)); n > 0; --n) {
    sweep_from_ = (sweep_from_ + 1) % strings_buckets(data_);
    entry* next = nullptr;
    for (entry* at = strings_first(data_, sweep_from_); at != nullptr; at = next) {
      next = entry_next(at);
      if (!is_live(at, now_ms)) strings_remove_entry(file_, data_, at);
    }
  }
  return expiring_before - expiring();
}

}  // namespace kv
