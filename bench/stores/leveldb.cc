#include <fmt/core.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "stores/kinds.h"
#include "stores/log_structured.h"

namespace pawl::bench {

using LevelDbStore = LogStructuredStore<leveldb::DB, leveldb::Options, leveldb::WriteOptions,
                                        leveldb::ReadOptions, leveldb::WriteBatch, leveldb::Slice>;

StoreKind leveldb_kind() {
  return {"leveldb", fmt::format("LevelDB {}.{}", leveldb::kMajorVersion, leveldb::kMinorVersion),
          "WriteOptions::sync; a batch is a WriteBatch",
          [](const StoreSetup& setup) { return std::make_unique<LevelDbStore>(setup); }};
}

}  // namespace pawl::bench
