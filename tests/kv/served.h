// The server examples/kv without its event loop, and with a thousandth of its bounds
// (KV_SMALL_BOUNDS): what a client sends goes in, what it is answered comes out.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "kv/bounds.h"
#include "kv/client.h"
#include "kv/rounds.h"
#include "kv/store.h"

namespace kv::test {

// What the data set holds, but for when keys expire; or without those that may expire meanwhile.
inline std::string dump(const Store& store, bool with_expiring = true) {
  std::set<std::string> keys;
  for (size_t shard = 0; shard < kShards; ++shard) {
    for (const auto& [key, entry] : store.shard(shard)) {
      if (!with_expiring && entry.expires_ms != 0) continue;
      std::string text = std::string(key) + '\0' + std::string(type_name(entry.value)) +
                         (entry.expires_ms == 0 ? " " : " expires ");
      const auto put = [&text](std::string_view word) {
        text += std::to_string(word.size()) + ":" + std::string(word);
      };
      if (const auto* string = std::get_if<String>(&entry.value)) put(*string);
      if (const auto* list = std::get_if<Box<List>>(&entry.value)) {
        for (const String& element : **list) put(element);
      }
      if (const auto* hash = std::get_if<Box<Hash>>(&entry.value)) {
        for (const auto& [field, value] : **hash) {
          put(field);
          put(value);
        }
      }
      if (const auto* set = std::get_if<Box<Set>>(&entry.value)) {
        for (const std::string_view member :
             std::set<std::string_view>((*set)->begin(), (*set)->end())) {
          put(member);
        }
      }
      if (const auto* set = std::get_if<Box<SortedSet>>(&entry.value)) {
        for (const auto* element : (*set)->order) {
          put(element->first);
          put(std::to_string(element->second));
        }
        text += std::to_string((*set)->scores.size());
      }
      keys.insert(std::move(text));
    }
  }
  std::string all;
  for (const std::string& key : keys) all += key + '\n';
  return all;
}

class Served {
 public:
  explicit Served(const std::string& heap_file)
      : heap_(heap_file, {.size_bytes_max = kHeapBytesMax}),
        store_(heap_.root<Store>()),
        rounds_(store_, facts_of(heap_)) {
    heap_.sync();
    rounds_.set_delivery([this](Client& client) {
      client.closing |= std::exchange(closes_, false);
      if (client.abandoned) client.round.clear();
      if (replies_.empty()) {
        replies_.swap(client.round);
      } else {
        replies_ += client.round;
      }
      empty(client.round);
    });
  }

  void require_password(std::string password) { facts_.password = std::move(password); }
  void sweep() {
    rounds_.sweep();
    rounds_.finish();
  }
  // As Connections does to who has the largest buffers.
  void close_at_next_delivery() { closes_ = true; }
  void connect() {
    client_ = std::make_unique<Client>();
    rounds_.greet(*client_, 1);
  }

  // What is answered to all that is whole of what the client has sent now.  Calls check() behind
  // each request.
  template <class Check>
  const std::string& turn(std::string_view sent, Check check) {
    replies_.clear();
    try {
      client_->reader.append(sent);
      for (bool has_more = true; has_more;) {
        has_more = serve(check);
        rounds_.finish();
      }
    } catch (const std::bad_alloc&) {  // as Connections does
      client_->abandon();
      rounds_.finish();
    }
    return replies_;
  }
  const std::string& turn(std::string_view sent) {
    return turn(sent, [] {});
  }

  Store& store() { return store_; }
  pawl::heap& heap() { return heap_; }
  const Client& client() const { return *client_; }
  bool is_open() const { return !client_->ended && !rounds_.has_failed(); }
  bool has_failed() const { return rounds_.has_failed(); }

 private:
  static constexpr uint64_t kHeapBytesMax = uint64_t{64} << 20;

  RoundFacts& facts_of(pawl::heap& heap) {
    facts_.heap = &heap;
    return facts_;
  }

  // True when it paused because of what waits to be sent.
  template <class Check>
  bool serve(Check check) {
    while (is_open()) {
      if (client_->unsent_bytes() > kOutputBytesPause) return true;
      const RequestReader::Outcome outcome = client_->reader.next();
      if (outcome == RequestReader::Outcome::kIncomplete) return false;
      if (outcome == RequestReader::Outcome::kRequest) {
        rounds_.serve(*client_, client_->reader.arguments());
      } else {
        rounds_.refuse(*client_, client_->reader.error());
      }
      check();
    }
    return false;
  }

  pawl::heap heap_;
  Store& store_;
  RoundFacts facts_;
  Rounds rounds_;
  std::unique_ptr<Client> client_;
  std::string replies_;
  bool closes_ = false;
};

}  // namespace kv::test
