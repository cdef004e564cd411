#include <fmt/core.h>
#include <rocksdb/db.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <stdexcept>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

void expect(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

class RocksDbStore final : public Store {
 public:
  explicit RocksDbStore(const StoreSetup& setup) {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* database = nullptr;
    expect(rocksdb::DB::Open(options, setup.directory + "/store", &database));
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
    const rocksdb::Status status = database_->Get({}, slice(key), &value);
    if (status.IsNotFound()) return false;
    expect(status);
    return true;
  }

 private:
  std::unique_ptr<rocksdb::DB> database_;
  rocksdb::WriteOptions durable_;
  rocksdb::WriteBatch batch_;
  bool in_batch_ = false;
};

}  // namespace

StoreKind rocksdb_kind() {
  return {"rocksdb", fmt::format("RocksDB {}.{}.{}", ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH),
          "WriteOptions::sync; a batch is a WriteBatch",
          [](const StoreSetup& setup) { return std::make_unique<RocksDbStore>(setup); }};
}

}  // namespace pawl::bench
