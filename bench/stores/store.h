// What a key-value store must offer to take part.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::bench {

struct StoreSetup {
  std::string directory;       // the store's own; holds the store's files or nothing
  std::uint64_t keys_max = 0;  // how many keys it will hold at once
  std::uint32_t value_bytes = 0;
};

// So far, where the store can say.
struct JournalUse {
  std::uint64_t bytes = 0;        // put into the journal
  std::uint64_t checkpoints = 0;  // the store's files were flushed, and the journal emptied
};

// Functions throw std::runtime_error when the store fails, and none is called by two threads.
// Closing makes nothing durable that was not durable before, and loses nothing that was.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Outside a batch, what these did is durable when they return.  In a batch, it is durable when
  // commit_batch() returns.
  virtual void put(std::string_view key, std::string_view value) = 0;
  virtual void erase(std::string_view key) = 0;  // of a key that is there
  virtual void begin_batch() = 0;
  virtual void commit_batch() = 0;

  // False when there is no such key.  Not in a batch.
  virtual bool get(std::string_view key, std::string& value) = 0;

  virtual JournalUse journal_use() { return {}; }
};

enum class Role {
  pawl,
  rival,  // what Pawl is judged against
  bound   // need not hold anything when it is opened again
};

struct StoreKind {
  std::string name;
  std::string product;  // with its version
  std::string setting;  // what makes its operations durable, and what that promises
  // Opens the store in the directory, or makes one.  Throws Unavailable when this machine cannot
  // have it.
  std::function<std::unique_ptr<Store>(const StoreSetup&)> open;
  Role role = Role::rival;
};

}  // namespace pawl::bench
