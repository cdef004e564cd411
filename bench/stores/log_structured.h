// LevelDB, and RocksDB, which kept its interface.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "stores/store.h"

namespace pawl::bench {

template <class Database, class Options, class WriteOptions, class ReadOptions, class WriteBatch,
          class Slice>
class LogStructuredStore final : public Store {
 public:
  explicit LogStructuredStore(const StoreSetup& setup) {
    Options options;
    options.create_if_missing = true;
    Database* database = nullptr;
    expect(Database::Open(options, setup.directory + "/store", &database));
    database_.reset(database);
    durable_.sync = true;
  }

  void put(std::string_view key, std::string_view value) override {
    if (in_batch_)
      batch_.Put(slice(key), slice(value));
    else
      expect(database_->Put(durable_, slice(key), slice(value)));
  }
  void erase(std::string_view key) override {
    if (in_batch_)
      batch_.Delete(slice(key));
    else
      expect(database_->Delete(durable_, slice(key)));
  }
  void begin_batch() override { in_batch_ = true; }
  void commit_batch() override {
    expect(database_->Write(durable_, &batch_));
    batch_.Clear();
    in_batch_ = false;
  }
  bool get(std::string_view key, std::string& value) override {
    const auto status = database_->Get(ReadOptions(), slice(key), &value);
    if (status.IsNotFound()) return false;
    expect(status);
    return true;
  }

 private:
  static Slice slice(std::string_view text) { return {text.data(), text.size()}; }
  template <class Status>
  static void expect(const Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  std::unique_ptr<Database> database_;
  WriteOptions durable_;
  WriteBatch batch_;
  bool in_batch_ = false;
};

}  // namespace pawl::bench
