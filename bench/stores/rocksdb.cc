#include <fmt/core.h>
#include <rocksdb/db.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include "stores/kinds.h"
#include "stores/log_structured.h"

namespace pawl::bench {

using RocksDbStore = LogStructuredStore<rocksdb::DB, rocksdb::Options, rocksdb::WriteOptions,
                                        rocksdb::ReadOptions, rocksdb::WriteBatch, rocksdb::Slice>;

StoreKind rocksdb_kind() {
  return {"rocksdb", fmt::format("RocksDB {}.{}.{}", ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH),
          "WriteOptions::sync; a batch is a WriteBatch",
          [](const StoreSetup& setup) { return std::make_unique<RocksDbStore>(setup); }};
}

}  // namespace pawl::bench
