#include <fmt/core.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <stdexcept>

#include "stores/kinds.h"

namespace pawl::bench {
namespace {

void expect(const leveldb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

class LevelDbStore final : public Store {
 public:
  explicit LevelDbStore(const StoreSetup& setup) {
    leveldb::Options options;
    options.create_if_missing = true;
    leveldb::DB* database = nullptr;
    expect(leveldb::DB::Open(options, setup.directory + "/store", &database));
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
    const leveldb::Status status = database_->Get({}, slice(key), &value);
    if (status.IsNotFound()) return false;
    expect(status);
    return true;
  }

 private:
  std::unique_ptr<leveldb::DB> database_;
  leveldb::WriteOptions durable_;
  leveldb::WriteBatch batch_;
  bool in_batch_ = false;
};

}  // namespace

StoreKind leveldb_kind() {
  return {"leveldb", fmt::format("LevelDB {}.{}", leveldb::kMajorVersion, leveldb::kMinorVersion),
          "WriteOptions::sync; a batch is a WriteBatch",
          [](const StoreSetup& setup) { return std::make_unique<LevelDbStore>(setup); }};
}

}  // namespace pawl::bench
